"""Whatever is changed in a folder, with its checksums put right: an InputError or a model that answers."""

import contextlib
import copy
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphfcl.errors import InputError
from graphfcl.files import canonical_json, sha256_of
from graphfcl.production import GraphClassifier, ModelFolder
from graphfcl.production.codec import TREES
from graphfcl.production.format_1 import FILES
from tests.production.crafting import CraftedFolder
from tests.production.test_versions import FORMAT_1

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "40"))  # more of them by hand, others each time
SAME = "FUZZ_EXAMPLES" not in os.environ
ODD: list[Any] = [
    None, True, -1, 0, 1, 3, 7.5, -0.0, 1e300, 10**6, 10**12, 2**63, -(2**70), "", "x", "²", "../x", [], [[]], [0, 0],
    {}, {"a": 1},
]  # fmt: skip


def paths(values: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in JSON values; of long lists the first three."""
    found = [here] if here else []
    if isinstance(values, dict):
        found += [place for key, inner in values.items() for place in paths(inner, (*here, key))]
    elif isinstance(values, list):
        found += [place for key, inner in enumerate(values[:3]) for place in paths(inner, (*here, key))]
    return found


def mutated(values: Any, data: st.DataObject) -> Any:
    """One place of the values is another, is gone, or stands elsewhere too."""
    values = copy.deepcopy(values)
    places = paths(values)
    *outer, last = data.draw(st.sampled_from(places))
    inside = values
    for key in outer:
        inside = inside[key]
    how = data.draw(st.sampled_from(["other", "gone", "twice"]))
    if how == "gone":
        del inside[last]
    elif how == "twice" and isinstance(inside, list):
        inside.append(inside[last])
    else:
        inside[last] = data.draw(st.sampled_from(ODD))
    return values


def change(folder: CraftedFolder, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["manifest", "tree", "tree", "array", "array"]))
    if kind == "manifest":
        folder.write_manifest(mutated(folder.manifest(), data))
        return
    tree = data.draw(st.sampled_from(TREES))
    found = folder.tree(tree)
    if kind == "tree" or not found["arrays"]:
        folder.write_tree(tree, canonical_json(mutated(found, data)))
        return
    name = data.draw(st.sampled_from(sorted(found["arrays"])))
    random = np.random.default_rng(data.draw(st.integers(0, 9999)))

    def other(array: np.ndarray) -> np.ndarray:
        flat = array.reshape(-1)
        if flat.size == 0 or random.random() < 0.2:
            return np.concatenate([flat, flat[:1]]) if flat.size else np.ones(3, array.dtype)
        raw = flat.view(np.uint8)
        raw[random.integers(0, raw.size, random.integers(1, 9))] = random.integers(0, 256)
        return array if random.random() < 0.8 else flat[:-1]

    folder.change_array(tree, name, other)


def refused_or_works(folder: CraftedFolder) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(InputError):
            model = GraphClassifier.load(folder.path)
            found = model.prediction_columns()
            model.wait()
            assert len(found["class"]) == len(model.node_ids_)
            assert np.isfinite(found["probability"]).all()
        with contextlib.suppress(InputError):
            list(ModelFolder(folder.path).history())
        with contextlib.suppress(InputError):
            GraphClassifier.load(folder.path).parts().read()


fuzzed = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=SAME)


@fuzzed
@given(data=st.data())
def test_a_changed_folder_is_refused_or_works(kept: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = CraftedFolder(kept, Path(place) / "model")
        change(folder, data)
        refused_or_works(folder)


@fuzzed
@given(data=st.data())
def test_a_changed_folder_of_format_1_is_refused_or_works(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = CraftedFolder(FORMAT_1, Path(place) / "model")
        if data.draw(st.booleans()):
            folder.write_manifest(mutated(folder.manifest(), data))
        else:
            name = data.draw(st.sampled_from(sorted(FILES)))
            path = folder.path / "objects" / f"{folder.manifest()['files'][name]}.{FILES[name]}"
            content = np.frombuffer(path.read_bytes(), np.uint8).copy()
            random = np.random.default_rng(data.draw(st.integers(0, 9999)))
            content[random.integers(0, content.size, random.integers(1, 9))] = random.integers(0, 256)
            digest = sha256_of(content.tobytes())
            (folder.path / "objects" / f"{digest}.{FILES[name]}").write_bytes(content.tobytes())
            folder.change_manifest(lambda manifest: manifest["files"].update({name: digest}))
        refused_or_works(folder)
