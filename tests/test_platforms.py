"""A system without ``fcntl`` and ``resource``, as Windows is: simulated, in a process of its own."""

import subprocess
import sys
from pathlib import Path

import pytest

MISSING = """
import sys
sys.modules["fcntl"] = None
sys.modules["resource"] = None
"""
WINDOWS_LOCKS = """
import getpass, multiprocessing, subprocess  # which would take the module below for a sign of Windows
import os, types
held = {}
def locking(descriptor, mode, count):
    assert mode == 2 and count == 1 and os.lseek(descriptor, 0, os.SEEK_CUR) > 10**6
    place = os.fstat(descriptor).st_ino
    if place in held and held[place] != descriptor:
        raise PermissionError(13, "Permission denied")
    held[place] = descriptor
msvcrt = types.ModuleType("msvcrt")
msvcrt.locking, msvcrt.LK_NBLCK = locking, 2
sys.modules["msvcrt"] = msvcrt
"""
EVERYTHING = """
import pkgutil, importlib, graphfcl
for found in pkgutil.walk_packages(graphfcl.__path__, "graphfcl."):
    if ".service" not in found.name and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
for name in graphfcl.__all__:
    getattr(graphfcl, name)
"""
FIT = """
from graphfcl import GraphClassifier, InputError, load_dataset
graph, _ = load_dataset("synthetic:nodes=120,edges=480,classes=6,features=30,signal=0.9")
model = GraphClassifier("sgc-ridge").fit(graph, hide_classes=["class-05"])
assert len(model.predict()) == 120
"""
SAVED = """
from graphfcl.runtime.files import file_lock
model.save("model")
assert len(GraphClassifier.load("model").predict()) == 120
with file_lock("other", wait=0) as ours:
    assert ours
    with file_lock("other", wait=0) as second:
        assert not second
"""
NO_LOCKS = """
try:
    model.save("model")
except InputError as error:
    print(error)
"""


def run(code: str, folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.long
def test_every_module_is_imported_and_a_model_is_saved_with_the_locks_of_windows(tmp_path: Path) -> None:
    run(MISSING + WINDOWS_LOCKS + EVERYTHING + FIT + SAVED, tmp_path)


@pytest.mark.long
def test_without_any_locks_a_model_works_in_memory_and_saving_says_why_not(tmp_path: Path) -> None:
    out = run(MISSING + FIT + NO_LOCKS, tmp_path)
    assert "model/lock cannot be locked, because this Python has no file locks" in out
