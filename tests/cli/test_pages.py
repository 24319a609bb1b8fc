"""Every help page: nothing of it is cut off, and its examples are commands."""

import shlex

import pytest

from graphfcl.cli.help import JSON_KEYS, examples
from graphfcl.defaults import MODEL_METHOD, RUN_METHOD
from tests.cli.command import graphfcl_inside
from tests.cli.verbs import COMMANDS as ALL

NO_ANSWER = ("serve",)


def page(verb: str, monkeypatch: pytest.MonkeyPatch, width: int = 80) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERMINAL_WIDTH", str(width))
    return graphfcl_inside(*verb.split(), "--help").out


def joined(text: str) -> str:
    """The words of a text; where its lines are broken, also behind a hyphen, does not matter."""
    return " ".join(text.split()).replace("- ", "-")


@pytest.mark.parametrize("verb", ALL)
def test_no_default_no_name_and_no_word_is_missing(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = page(verb, monkeypatch)
    flat = joined(shown)
    for parameter in ALL[verb].params:
        names = [name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")]
        assert all(name in flat.split() or f"{name}," in flat for name in names), names
        text = getattr(parameter, "help", None) or ""
        assert joined(text) in flat, f"the page of {verb} lacks: {text}"
        default = parameter.default
        if default not in (None, False, True, "") and not callable(default) and parameter.show_default:
            assert f"[default: {default}" in flat.split(f"{names[0]} ", 1)[1], f"{verb} {names}: {default}"
    assert "…" not in shown
    assert all(len(line) <= 80 for line in shown.split("Examples:")[0].splitlines())


def test_every_verb_has_an_example() -> None:
    assert all(examples(verb) for verb in ALL)
    assert set(JSON_KEYS) == set(ALL) - set(NO_ANSWER)
    answering = {verb for verb, command in ALL.items() if any("--json" in each.opts for each in command.params)}
    assert answering == set(JSON_KEYS)


@pytest.mark.parametrize("verb", ALL)
def test_examples_are_commands_of_the_verb(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = page(verb, monkeypatch)
    for example in examples(verb):
        assert f"\n    graphfcl {example}\n" in shown
        words = shlex.split(example.partition(" | ")[0].partition(" > ")[0])
        assert words[: len(verb.split())] == verb.split()
        command = ALL[verb]
        # What no verb declares would be an error here; `run` takes --no-NAME, which its method knows.
        with command.make_context(verb, words[len(verb.split()) :]) as context:
            assert all(word.startswith("--no-") for word in context.args)


def test_the_defaults_of_run_and_fit_differ_and_run_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    run, fit = (joined(page(verb, monkeypatch)) for verb in ("run", "fit"))
    assert f"The default is HAG-Meta; for your own data use {MODEL_METHOD}. [default: {RUN_METHOD}]" in run
    assert f"[default: {MODEL_METHOD}]" in fit


@pytest.mark.parametrize("verb", ["", "data", *ALL])
def test_no_page_uses_a_private_word(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    private = {
        "walk",
        "walks",
        "anew",
        "nobody",
        "told",
        "label_batch",
        "strange",
        "rehearse",
        "rehearses",
        "rehearsal",
        "fix",
    }
    assert not private & set(joined(page(verb, monkeypatch)).lower().replace(",", " ").replace(".", " ").split())


def test_the_page_of_all_verbs_has_whole_summaries(monkeypatch: pytest.MonkeyPatch) -> None:
    flat = joined(page("", monkeypatch))
    for verb, command in ALL.items():
        if " " not in verb:
            assert f" {verb} {joined(command.help.split(chr(10) * 2)[0])}" in flat
    assert "A model in production:" in flat
    assert "--install-completion" in flat
