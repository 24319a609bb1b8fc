"""Run tasks as jobs of Slurm, or of this machine, through submitit.

submitit passes orders and outcomes through pickle files. They are in a new folder with a random name that only this
user may read, and are removed at the end. Nothing is read from a folder that existed before.
"""

import os
import secrets
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from typing import Any

from graphfcl.errors import GraphfclWarning, InputError, did_you_mean, in_one_line
from graphfcl.runtime.cores import usable_cores
from graphfcl.runtime.files import make_folder
from graphfcl.runtime.lazy_names import import_extra
from graphfcl.runtime.tasks.contract import Backend, Order, Outcome, Tasks, WorkerLost
from graphfcl.runtime.tasks.worker import carry_out, changed_variable, search_path, unreadable

CLUSTERS = ("slurm", "local")
DEFAULTS = {"name": "graphfcl", "timeout_min": 720}  # submitit's default limit is 5 minutes
POLL = 0.2  # seconds between two checks of all jobs


class SubmititEngine:
    """Engine that runs each task as a job, which starts when the queue of the cluster allows."""

    def __init__(self, tasks: Tasks) -> None:
        self.submitit = import_extra("submitit", "submitit", "the backend submitit")
        options = {**DEFAULTS, **tasks.submitit_options}
        self.cluster = _cluster(options.pop("cluster", None), self.submitit)
        self.folder = _own_folder(tasks.folder, self.cluster)
        self.lost: list[str] = []
        on_slurm = self.cluster == "slurm"
        self.threads = tasks.threads if on_slurm else tasks.threads or max(1, usable_cores() // tasks.workers)
        if on_slurm and tasks.threads:
            options.setdefault("cpus_per_task", tasks.threads)
        if tasks.gpus:
            options.setdefault("gpus_per_node", ceil(tasks.gpus))
        try:
            self.executor = self.submitit.AutoExecutor(self.folder, cluster=self.cluster)
            self.executor.update_parameters(**options)
        except Exception as error:  # submitit or sbatch does not accept a name or value
            shutil.rmtree(self.folder, ignore_errors=True)
            raise InputError(
                f"submitit does not accept these options ({in_one_line(error)}): see its documentation of "
                "update_parameters."
            ) from error

    def submit(self, order: Order) -> Any:
        try:
            with changed_variable("PYTHONPATH", search_path()):  # jobs inherit the environment
                return self.executor.submit(carry_out, order)
        except Exception as error:
            raise InputError(
                f"a job could not be submitted ({in_one_line(error)}): check partition, limits and options; finished "
                "tasks stay finished."
            ) from error

    def wait(self, running: Sequence[Any], seconds: float) -> Sequence[Any]:
        until = time.monotonic() + seconds
        while True:
            ended = [job for job in running if job.done()]
            if ended or time.monotonic() >= until:
                return ended
            time.sleep(POLL)

    def outcome(self, handle: Any) -> Outcome:
        if self.cluster == "local" and not handle.paths.result_pickle.exists():
            self._lose(handle)  # a local file system shows a result at once, so there is none
        try:
            return handle.result()
        except self.submitit.core.utils.FailedJobError as error:  # carry_out never raises, so the order was unreadable
            return unreadable(RuntimeError(_last_line(str(error))))
        except self.submitit.core.utils.UncompletedJobError:
            self._lose(handle)
            raise

    def _lose(self, job: Any) -> None:
        """Raise a WorkerLost error for a job without a result, and keep its log."""
        self.lost.append(job.job_id)
        log = _last_line(job.stderr() or "") or "its log is empty"
        raise WorkerLost(f"job {job.job_id} ended without a result ({log}; logs are in {self.folder})")

    def cancel(self, running: Sequence[Any]) -> None:
        for job in running:
            with suppress(Exception):  # the job may have ended already
                _stop_here(job) if self.cluster == "local" else job.cancel(check=False)

    def close(self) -> None:
        if not self.lost:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        for path in self.folder.rglob("*.pkl"):
            path.unlink(missing_ok=True)
        warnings.warn(f"logs of jobs that ended early are in {self.folder}.", GraphfclWarning, 2)


def _stop_here(job: Any) -> None:
    """Kill a local job, which consists of a controller process and its child."""
    if job.done():
        return
    controller = int(job.job_id)
    os.kill(controller, signal.SIGSTOP)  # so that it does not start another process
    for child in Path(f"/proc/{controller}/task/{controller}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    os.kill(controller, signal.SIGKILL)
    while not job.done():
        time.sleep(POLL)


def _cluster(named: Any, submitit: Any) -> str:
    if named is None:
        here = submitit.AutoExecutor.which()
        return here if here in CLUSTERS else "local"
    if named not in CLUSTERS:
        raise InputError(f"submitit has no cluster {named!r} here: {did_you_mean(str(named), CLUSTERS)}")
    if named == "slurm" and shutil.which("srun") is None:
        raise InputError("this machine has no Slurm (srun is not found): start on a login node, or take cluster=local.")
    return named


def _own_folder(folder: Path | None, cluster: str) -> Path:
    """Make a new folder for this run."""
    if folder is None:
        if cluster == "slurm":
            raise InputError("jobs of Slurm need a folder that every node can access: name one.")
        return Path(tempfile.mkdtemp(prefix="graphfcl-"))
    own = Path(folder).absolute() / secrets.token_hex(8)
    try:
        make_folder(own.parent)
        own.mkdir(mode=0o700)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror}): choose another folder.") from error
    return own


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -")]
    return lines[-1][:200] if lines else ""


def options_from(pairs: Sequence[str]) -> Mapping[str, Any]:
    """Parse ``key=value`` pairs as parameters of submitit; values become integers, floats or text."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise InputError(f"{pair!r} is not an option of submitit: write it as key=value.")
        options[key.strip()] = _value(text.strip())
    return options


def _value(text: str) -> Any:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


SUBMITIT = Backend("submitit", "jobs of Slurm, or of this machine, through submitit", SubmititEngine)
