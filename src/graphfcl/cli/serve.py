"""The verb that serves a model over HTTP."""

import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from graphfcl.cli.changes import Model, OwnMethod, bring
from graphfcl.cli.on_disk import OnDiskOptions, settle_first
from graphfcl.cli.options import Device, with_option_groups
from graphfcl.errors import InputError


@with_option_groups
def serve(
    model: Model,
    host: Annotated[str, typer.Option("--host", help="Address to listen on; 0.0.0.0 listens on all.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 chooses a free one.")
    ] = 8765,
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file", help="File with the access token, created if missing (default: a new token for each start)."
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Further host name under which the service may be reached; repeatable."),
    ] = None,
    method: OwnMethod = None,
    device: Device = "auto",
    *,
    on_disk: OnDiskOptions,
) -> None:
    """Serve a model over HTTP, with a web page for labelling."""
    missing = [name for name in ("fastapi", "uvicorn") if find_spec(name) is None]
    if missing:
        raise InputError(
            f"`graphfcl serve` needs {' and '.join(missing)}: install them with `pip install 'graphfcl[serve]'`."
        )
    bring(method, model)
    from graphfcl.cli.run import requested_device
    from graphfcl.production import ModelFolder
    from graphfcl.service.serving import Address, serve

    address, use = Address(host, port, tuple(allow_host or ())), on_disk.use()
    if ModelFolder(model).exists():
        with redirect_stdout(sys.stderr):  # the first line of the output is the address
            settle_first(ModelFolder(model, use).load())
    try:
        serve(model, address, token_file, device=requested_device(device), use=use)
    except KeyboardInterrupt:
        raise typer.Exit from None
