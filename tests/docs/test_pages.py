"""Every command and every piece of Python in README and the docs is run, page by page, on small graphs."""

import contextlib
import multiprocessing
import os
import signal
import traceback
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Page, page_paths, read_page

LIMIT = 300  # seconds
FEW = 12  # blocks that may be skipped, of all pages together


def _context() -> multiprocessing.context.ForkServerContext:
    """Processes that have everything imported and have computed nothing yet."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.docs.preloaded"])
    return context


def _run(page: Page, folder: Path, answer: Connection) -> None:
    from tests.docs.running import PageError, run_page

    os.setsid()  # whatever the page starts ends with it
    try:
        run_page(page, folder)
        answer.send("")
    except PageError as error:
        answer.send(str(error))
    except BaseException:
        answer.send(traceback.format_exc())


def try_page(page: Page, folder: Path) -> str:
    """What is wrong with a page; nothing if all of it runs."""
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(page, folder, theirs))
    process.start()
    try:
        return ours.recv() if ours.poll(LIMIT) else f"{page.path.name} took more than {LIMIT} s"
    finally:
        process.join(60)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid or 0, signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("path", page_paths(), ids=lambda path: path.name)
def test_all_of_a_page_runs(path: Path, tmp_path: Path) -> None:
    wrong = try_page(read_page(path), tmp_path)
    assert not wrong, wrong


def test_few_blocks_are_skipped() -> None:
    skipped = [block for path in page_paths() for block in read_page(path).blocks if block.values("skip")]
    assert len(skipped) <= FEW, [f"{block.line}: {block.values('skip')}" for block in skipped]


def page_of(folder: Path, text: str) -> Page:
    path = folder / "page.md"
    path.write_text(text)
    return read_page(path)


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("```bash\ngraphfcl data show --graph nowhere\n```", "there is no dataset or file 'nowhere'"),
        ("```python\nimport graphfcl_of_old\n```", "No module named 'graphfcl_of_old'"),
        ("```console\n$ graphfcl predict --model m --nodes asked.csv --out a.csv\n```", "ended with 2"),
        ("<!-- test: output -->\n```console\n$ echo one\ntwo\n```", "shows\n  two\nwhich does not come out"),
        ("```console\n$ graphfcl --version\nerror: there is none\n```", "not with an error"),
    ],
)
def test_what_does_not_run_is_said(tmp_path: Path, block: str, complaint: str) -> None:
    assert complaint in try_page(page_of(tmp_path, f"# A page\n\n{block}\n"), tmp_path)


def test_a_page_is_run_in_order_with_its_files_and_names(tmp_path: Path) -> None:
    text = (
        "<!-- test: file: own.py -->\n```python\nvalue = 3\n```\n"
        "```python\nfrom own import value\n```\n```python\nassert value == 3\n```\n"
        "```console\n$ cat table.csv\nnode\nmy-game\n$ test -f table.csv\n```\n"
        "<!-- test: replace: five => three -->\n```bash\ntest three = five\n```\n"
        "<!-- test: output -->\n```console\n$ echo one 17 && echo three\none 4\n…\nth…\n```\n"
        "<!-- test: skip: needs another world -->\n```bash\nfalse\n```\n"
    )
    assert try_page(page_of(tmp_path, text), tmp_path) == ""


@pytest.mark.parametrize(
    ("mark", "complaint"),
    [
        ("skip: because", "gives no reason"),
        ("skip", "says nothing"),
        ("later", "no mark 'later'"),
        ("replace: a", "has no =>"),
        ("add: a", "has no =>"),
        ("real: yes", "takes no value"),
    ],
)
def test_marks_are_held_to_their_form(tmp_path: Path, mark: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        page_of(tmp_path, f"<!-- test: {mark} -->\n```bash\nfalse\n```\n")


def test_a_mark_above_no_block_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stands above no block"):
        page_of(tmp_path, "<!-- test: real -->\n\nA paragraph.\n\n```bash\ntrue\n```\n")


def test_every_page_is_looked_at() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in page_paths()}
    assert {"README.md", "docs/production.md", "docs/tutorial.md"} <= names
