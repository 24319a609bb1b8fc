"""``graphfcl methods`` and ``graphfcl check``."""

from typing import Annotated

import typer

from graphfcl.cli.options import settings_from_options


def list_methods(
    name: Annotated[
        str | None,
        typer.Argument(help="Show the settings of this method; your own as module:Class.", show_default=False),
    ] = None,
) -> None:
    """All methods, plug-ins included, or the settings of one with their defaults."""
    from graphfcl.cli.show import print_table
    from graphfcl.methods import GROUPS, method_from, plug_in_rows

    if name is None:
        rows = {group: [_row(each) for each in names] for group, names in GROUPS.items()}
        for group, found in {**rows, "plug-ins": plug_in_rows()}.items():
            if found:
                print(f"\n{group}:")
                print_table(("method", "what", "reference"), found)
        return
    method = method_from(name, name)
    settings = method.settings_rows()
    if settings:
        print_table(("setting (--set key=value)", "default", "kind", "what it is"), settings)
    else:
        print(f"{method.name} has no settings.")


def _row(name: str) -> tuple[str, str, str]:
    from graphfcl.methods import find_method

    method = find_method(name)
    return method.name, method.title, method.reference


def check(
    learner: Annotated[str, typer.Argument(help="Your learner as module:Class, or a name from `graphfcl methods`.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting, so that it learns quickly: key=value; may be repeated."),
    ] = None,
) -> None:
    """Hold a learner to the contract: a line for each rule, and why it is broken."""
    from graphfcl.methods import method_from
    from graphfcl.methods.testing import RULES, broken_rules, says

    method = method_from(learner, learner)
    changes = settings_from_options(settings or [])
    method.settings_with(changes)
    broken = 0
    for rule, why in broken_rules(method.learner, changes):
        print(f"{'ok    ' if why is None else 'BROKEN'}  {says(rule)}", flush=True)
        if why is not None:
            print(f"        {why}", flush=True)
            broken += 1
    if broken:
        print(f"{method.name} breaks {broken} of {len(RULES)} rules.")
        raise typer.Exit(1)
    print(f"{method.name} keeps all {len(RULES)} rules.")
