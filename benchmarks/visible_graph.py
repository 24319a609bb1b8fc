"""Cutting and normalising a session's visible graph on the Reddit-sized preset.

Time: against one fancy-index ``A[nodes][:, nodes]`` of scipy with the same nodes. Memory: the peak of a
process (Linux) that holds the graph, cuts its first and its last session and normalises them, against the bytes of the
graph; making the graph does not count.
"""

import subprocess
import sys
from pathlib import Path

from benchmarks.timing import best_seconds, report
from graphfcl.datasets import load_dataset
from graphfcl.graph import VisibleGraph
from graphfcl.stream import Stream, make_stream


def make(track: str = "transductive") -> Stream:
    graph, protocol = load_dataset("synthetic-reddit")
    return make_stream(graph, protocol, seed=0, track=track)


def time_ratios() -> None:
    stream = make()
    graph, session = stream.graph.loaded(), len(stream) // 2
    nodes = stream.evaluation_graph(session).nodes

    def cut() -> VisibleGraph:
        cut_out = graph.visible(nodes)
        _ = cut_out.normalised
        return cut_out

    reference = best_seconds(lambda: graph.adjacency[nodes][:, nodes])
    features = best_seconds(lambda: graph.features[nodes])
    whole = best_seconds(cut)
    report(f"scipy fancy-index, {nodes.size:,} of {stream.graph.node_count:,} nodes", reference, "s", "-", True)
    report("copy of the feature rows alone", features, "s", "-", True)
    ratio = whole / reference
    report("cut and normalise, feature rows included / fancy-index", ratio, "x", "<= 3", ratio <= 3)


def peak_ratio() -> None:
    """In a process of its own, so that nothing else counts."""
    code = "from benchmarks.visible_graph import print_peak; print_peak()"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    ratio = float(found.stdout)
    report("peak memory of the process / bytes of the graph", ratio, "x", "< 3", ratio < 3)


def print_peak() -> None:
    stream = make()
    size = stream.graph.byte_count
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of making the graph
    for number in (0, len(stream)):
        _ = stream.evaluation_graph(number).loaded().normalised
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) * 1024 / size)


def main() -> None:
    time_ratios()
    peak_ratio()
