"""Serves models in forked processes, each a real server on a port of its own; called by servers.py.

Reads a line of JSON for each server to start, answers with a line: its process, its port, or what went wrong. A process
of its own that has imported everything can fork a server in no time.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

from graphfcl import InputError
from graphfcl.service.serving import Address, serve

torch.set_num_threads(1)  # threads do not survive a fork
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever was killed need not be waited for


def start(query: dict[str, str]) -> dict[str, object]:
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            os.dup2(write, 1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(Path(query["folder"]), Address(query.get("host", "127.0.0.1"), 0), Path(query["token_file"]))
        except InputError as error:
            print(f"error: {error}", flush=True)
        finally:
            os._exit(0)
    os.close(write)
    with open(read) as output:
        line = output.readline()
    return {"process": process, "said": line}


for line in sys.stdin:
    print(json.dumps(start(json.loads(line))), flush=True)
