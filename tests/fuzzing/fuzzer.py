"""Cases of the fuzzer: a part of a copy is changed, and whatever is then tried raises nothing but errors of its own."""

import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from graphfcl.errors import GraphfclError
from tests.fuzzing.formats import Copy, Format
from tests.fuzzing.mutators import mutate

SWAPPED = 0.05  # share of cases in which one part is written in the place of another


@dataclass(frozen=True)
class Hole:
    """An error that is not ours. case: repeats it. said: what was changed. trace: the error."""

    case: int
    said: str
    operation: str
    trace: str

    def __str__(self) -> str:
        return f"case {self.case}: {self.said}; {self.operation} raised\n{self.trace}"


def damage(copy: Copy, random: np.random.Generator) -> str:
    """Change a copy; what was changed."""
    parts = copy.parts()
    part = parts[random.integers(len(parts))]
    if random.random() < SWAPPED:
        other = parts[random.integers(len(parts))]
        copy.write(part, copy.read(other))
        return f"{other} in the place of {part}"
    tree: Any = {"root": copy.read(part)}
    said = mutate(tree["root"], random)
    copy.write(part, tree["root"])
    return f"{part}: {said}"


def holes(format: Format, place: Path, cases: range, seed: int = 0) -> Iterator[Hole]:
    """Try some cases, each on a copy of its own below ``place``; what they found."""
    for case in cases:
        random = np.random.default_rng([seed, case])
        copy = format.copy(place / f"case-{case}")
        said = damage(copy, random)
        for name, operation in copy.operations().items():
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    operation()
                except GraphfclError as error:
                    if "\n" in str(error) or not str(error).strip():
                        yield Hole(case, said, name, f"not one sentence: {error}")
                except Exception:
                    yield Hole(case, said, name, traceback.format_exc(limit=-6))
