"""What to label next in a large graph: seconds and memory of ``suggest``, in a process of its own with one thread.

``SUGGEST_NODES`` changes how many nodes the graph has.
"""

import json
import os
import resource
import subprocess
import sys
import time

from benchmarks.timing import report

NODES = 200_000
BUDGET = 20
MINUTES_OF_A_MILLION = 10.0
GIGABYTES_OF_A_MILLION = 12.0


def measure(nodes: int) -> dict[str, float]:
    """Of a graph that has no model: seconds, and the peak of memory of the whole process."""
    from graphfcl.datasets import load_dataset
    from graphfcl.production import suggest_for_graph

    graph, _ = load_dataset(f"synthetic:nodes={nodes},edges={5 * nodes},features=1000,classes=50")
    start = time.perf_counter()
    found = suggest_for_graph(graph, BUDGET)
    assert len(found) == BUDGET
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": time.perf_counter() - start, "gigabytes": peak}


def main() -> None:
    nodes = int(os.environ.get("SUGGEST_NODES", NODES))
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    code = f"import json; from benchmarks.suggest import measure; print(json.dumps(measure({nodes})))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **threads}, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout.splitlines()[-1])
    millions = nodes / 1e6
    seconds, gigabytes = 60 * MINUTES_OF_A_MILLION * millions, max(1.0, GIGABYTES_OF_A_MILLION * millions)
    title = f"suggest, {nodes:,} nodes, one thread"
    report(title, found["seconds"], "s", f"<= {seconds:.0f}", found["seconds"] <= seconds)
    report(f"{title}: memory", found["gigabytes"], "GB", f"<= {gigabytes:.1f}", found["gigabytes"] <= gigabytes)


if __name__ == "__main__":
    main()
