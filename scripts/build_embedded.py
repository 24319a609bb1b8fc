"""Rebuild the graphs that ship with the package.

    apt-get update
    apt-cache dumpavail | python -m scripts.build_embedded debian
    apt-get install wordnet-base
    python -m scripts.build_embedded wordnet

The shipped ``debian`` is bookworm with its updates and security archives, main only, architecture arm64. On a machine
of another architecture add ``-o APT::Architecture=arm64 -o APT::Architectures=arm64`` to both apt commands.
"""

import sys
from pathlib import Path

from graphfcl.graph import write_npz
from scripts.sources.debian import build_debian
from scripts.sources.wordnet import build_wordnet

FILES = Path(__file__).resolve().parent.parent / "src" / "graphfcl" / "datasets" / "files"


def main(name: str) -> None:
    graph = build_debian(sys.stdin.read()) if name == "debian" else build_wordnet()
    path = FILES / f"{name}.npz"
    write_npz(graph, path)
    print(f"{graph!r}, same-class edges {graph.same_class_share:.3f}, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    if sys.argv[1:] not in (["debian"], ["wordnet"]):
        sys.exit("usage: build_embedded.py debian|wordnet")
    main(sys.argv[1])
