"""Write the hashes of the benchmark's streams: ``python -m scripts.benchmark_streams``; all five graphs must be there.

The protocol version must change whenever a hash does.
"""

import json
from pathlib import Path

import graphfcl.experiments
from graphfcl.experiments.benchmark import GRAPHS, benchmark_streams
from graphfcl.stream import PROTOCOL_VERSION, stream_hash


def main() -> None:
    streams = {graph: [stream_hash(stream) for stream in benchmark_streams(graph, None)] for graph in GRAPHS}
    path = Path(graphfcl.experiments.__file__).with_name("benchmark.json")
    path.write_text(json.dumps({"protocol_version": PROTOCOL_VERSION, "streams": streams}, indent=1) + "\n")
    print(f"wrote {path.name}: {sum(map(len, streams.values()))} streams")


if __name__ == "__main__":
    main()
