"""What whoever runs cells of a grid needs and does, in a process of this machine or elsewhere."""

import traceback
from dataclasses import dataclass
from pathlib import Path

from graphfcl.asking import Strategy, register_strategy
from graphfcl.errors import GraphfclError
from graphfcl.experiments.cells import Cell, run_cell
from graphfcl.experiments.peak_memory import release_gpu_memory
from graphfcl.experiments.store import CellStore
from graphfcl.methods import Learner, register_method

DEATHS = 3  # a cell whose process died so often is given up


@dataclass(frozen=True)
class Workshop:
    """Where and with what cells are run.

    threads: how many each process may start.
    methods, strategies: classes from outside that the cells name; a process must know them before it starts.
    """

    folder: Path
    device: str
    data_dir: Path | None
    threads: int
    methods: tuple[type[Learner], ...] = ()
    strategies: tuple[type[Strategy], ...] = ()


def register_outside(workshop: Workshop) -> None:
    """Make the classes from outside known to this process."""
    for learner in workshop.methods:
        register_method(learner)
    for strategy in workshop.strategies:
        register_strategy(strategy)


def settle(store: CellStore, cell: Cell, workshop: Workshop) -> None:
    """Run a cell and store what came out, be it an error."""
    try:
        result = run_cell(
            cell,
            device=workshop.device,
            encoders=workshop.folder / "encoders",
            data_dir=workshop.data_dir,
        )
        store.save(cell, result)
    except GraphfclError as error:
        store.fail(cell, str(error), traceback.format_exc())
    except Exception as error:  # whatever it is, the other cells go on
        store.fail(cell, f"{type(error).__name__}: {error}", traceback.format_exc())
    finally:
        release_gpu_memory(workshop.device)
