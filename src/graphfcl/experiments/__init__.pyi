"""The public names of ``graphfcl.experiments``: type checkers and the package itself read this list."""

from graphfcl.experiments.cells import (
    Cell as Cell,
    run_cell as run_cell,
)
from graphfcl.experiments.grid import (
    Grid as Grid,
    GridStatus as GridStatus,
    load_grids as load_grids,
)
from graphfcl.experiments.grid_file import (
    grid_from_toml as grid_from_toml,
)
from graphfcl.experiments.running import (
    run_grid as run_grid,
)
from graphfcl.experiments.runs import (
    CHECKPOINT_FILE as CHECKPOINT_FILE,
    RESULT_FILE as RESULT_FILE,
    STREAM_FILE as STREAM_FILE,
    Run as Run,
    run as run,
)
from graphfcl.experiments.store import (
    CellStore as CellStore,
    read_cell as read_cell,
)
from graphfcl.methods.shared.checkpoint import (
    load_checkpoint as load_checkpoint,
    save_checkpoint as save_checkpoint,
)

__all__: list[str]
