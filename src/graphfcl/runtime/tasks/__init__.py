"""Run independent tasks in processes of this machine, on Ray or on Slurm.

>>> from graphfcl.runtime.tasks import Tasks, run_tasks
>>> run_tasks(abs, [-1, 2, -3], Tasks(workers=2))
[1, 2, 3]
"""

from graphfcl.runtime.tasks.contract import Backend, Engine, Order, Outcome, TaskError, Tasks, WorkerLost
from graphfcl.runtime.tasks.running import BACKENDS, Workers, find_backend, run_tasks, start_workers

__all__ = [
    "BACKENDS",
    "Backend",
    "Engine",
    "Order",
    "Outcome",
    "TaskError",
    "Tasks",
    "WorkerLost",
    "Workers",
    "find_backend",
    "run_tasks",
    "start_workers",
]
