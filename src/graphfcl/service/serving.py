"""Run a service as a process: token, socket, shutdown."""

import atexit
import os
import secrets
import socket
import stat
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from graphfcl.errors import InputError, quoted
from graphfcl.production.graph.place import FolderUse
from graphfcl.service.app import make_app
from graphfcl.service.security import LOOPBACK, is_host_name

SHORTEST = 16  # characters of a token
LONGEST = 4096
SWITCH = 0.001  # seconds after which a computing thread yields to requests
EVERYWHERE = ("", "0.0.0.0", "::")


@dataclass(frozen=True)
class Address:
    """Where a service listens. ``allowed`` has further host names."""

    host: str = "127.0.0.1"
    port: int = 8765
    allowed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.allowed:
            if not is_host_name(name):
                raise InputError(
                    f"--allow-host {quoted(name)} is not a host name: give the name alone, such as "
                    "labels.example.org, without scheme, port or slash."
                )

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    def names(self) -> tuple[str, ...]:
        """Return all host names under which the service may be reached."""
        own = () if self.host in EVERYWHERE else (self.host,)
        return (*LOOPBACK, *own, *self.allowed)

    def listen(self) -> socket.socket:
        """Open a listening socket; raise an error if the port is taken."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        # asyncio disables Nagle's algorithm, which delays every answer by 40 ms, only if the protocol is given as TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self.host, self.port))
            listener.listen(128)
        except (OSError, OverflowError) as error:
            listener.close()
            why = getattr(error, "strerror", None) or error
            raise InputError(
                f"{self.host} port {self.port} cannot be used ({why}): choose another --port, or 0 for any free port, "
                "and a --host of this machine."
            ) from error
        return listener


def token_of(path: Path | None) -> str:
    """Read the token from a file, which is created if missing. Without a file, make a token for this run."""
    if path is None:
        return secrets.token_urlsafe(32)
    try:
        return _read_token(path) if path.exists() else _make_token(path)
    except OSError as error:
        raise InputError(
            f"the token file {path} cannot be read or created ({error.strerror}): check the path and its permissions."
        ) from error


def _make_token(path: Path) -> str:
    """Create a file with a random token that only its owner may read."""
    token = secrets.token_urlsafe(32)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")
    return token


def _read_token(path: Path) -> str:
    with open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            raise InputError(
                f"the token file {path} is not a regular file: name a file, or a path where it can be created."
            )
        if stat.S_IMODE(mode) & 0o077:
            raise InputError(f"the token file {path} can be read or written by other users: run `chmod 600` on it.")
        content = file.read(LONGEST + 1)
    try:
        token = content.decode("ascii").strip()
    except UnicodeDecodeError:
        token = ""
    if not (SHORTEST <= len(token) and len(content) <= LONGEST and token.isprintable() and " " not in token):
        raise InputError(
            f"the token file {path} must contain one word of at least {SHORTEST} ASCII characters: remove it, "
            "and `graphfcl serve` creates a new one."
        )
    return token


def serve(
    folder: Path,
    address: Address,
    token_file: Path | None,
    *,
    device: str = "cpu",
    use: FolderUse = FolderUse(),  # noqa: B008  # it is frozen
) -> None:
    """Serve a model until the process is stopped; the running change is finished first."""
    token, listening = token_of(token_file), address.listen()
    try:
        app = make_app(
            folder,
            token=token,
            hosts=address.names(),
            any_address=not address.is_loopback,
            token_for_reads=not address.is_loopback,
            device=device,
            use=use,
        )
    except BaseException:  # free the port; the error goes on to the user
        listening.close()
        raise
    port = listening.getsockname()[1]
    shown = f"[{address.host}]" if ":" in address.host else address.host
    secret = f"#token={token}" if token_file is None else ""
    print(f"Serving {folder} at http://{shown}:{port}/{secret}", flush=True)
    if token_file is not None:
        print(f"The token is in {token_file}.", flush=True)
    sys.setswitchinterval(SWITCH)
    configuration = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        ws="none",
    )
    with suppress(KeyboardInterrupt):  # Ctrl-C and SIGTERM
        uvicorn.Server(configuration).run(sockets=[listening])
    atexit.register(_end_computations)  # runs when threads that write have ended


def _end_computations() -> None:
    """End the process although a thread still computes. Python would abort if that thread is in a library."""
    if any(thread.daemon and thread.name.startswith("graphfcl-") for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
