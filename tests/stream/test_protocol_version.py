"""Streams know their protocol version, and how many nodes are trained on and tested."""

import json
from pathlib import Path

import pytest

from graphfcl import InputError, Protocol, load_stream, make_stream, save_stream
from graphfcl.runtime.files import canonical_json, sha256_of
from graphfcl.stream import PROTOCOL_VERSION
from tests.stream.test_leaks import sorted_graph


def test_other_protocol_versions_are_refused(tmp_path: Path) -> None:
    stream = make_stream(sorted_graph())
    values = stream.protocol.as_json()
    assert values["protocol_version"] == PROTOCOL_VERSION == 3
    assert Protocol.from_json(values) == stream.protocol
    for version, named in ((None, "an older protocol version"), (2, "protocol version 2"), (4, "protocol version 4")):
        other = {**values, "protocol_version": version}
        sentence = f"is of {named}; this graphfcl evaluates under protocol version 3"
        with pytest.raises(InputError, match=sentence):
            Protocol(**other)
        with pytest.raises(InputError, match=sentence):
            Protocol.from_json(other)
        save_stream(stream, tmp_path / "stream.json")
        content = json.loads((tmp_path / "stream.json").read_bytes())
        del content["sha256"]
        content["protocol"] = other
        content["sha256"] = sha256_of(canonical_json(content, ascii_only=False))
        (tmp_path / "stream.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match=rf"stream\.json {sentence}.*draw the stream again from its seed\.$"):
            load_stream(tmp_path / "stream.json", stream.graph)


def test_train_and_test_nodes_are_counted() -> None:
    for track in ("transductive", "isolated", "open", "active"):
        stream = make_stream(sorted_graph(), track=track)
        labelled = set(stream.base.train.tolist())
        for number in range(1, len(stream) + 1):
            if track == "active":
                labelled |= {(number, place) for place in range(stream.budget(number))}
            else:
                labelled |= set(stream.session(number).supports.tolist())
        assert stream.n_train == len(labelled)
        assert stream.n_test == len(stream.queries(len(stream)).nodes)
