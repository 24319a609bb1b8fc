"""``graphfcl methods`` and ``graphfcl check``."""

from typing import Annotated

import graphfcl.methods as methods
from graphfcl.cli.completion import method_names
from graphfcl.cli.options import Settings, argument, settings_from_options
from graphfcl.cli.output import Output, print_line, print_table, with_json


@with_json
def list_methods(
    name: Annotated[str | None, argument("Show the settings of this method.", method_names)] = None,
) -> Output:
    """List all methods, or the settings of one method.

    Methods of installed plug-ins are included. Settings are listed with their defaults.
    """
    if name is None:
        return _all_methods()
    method = methods.method_from(name, name)
    settings = method.settings_rows()

    def show() -> None:
        if settings:
            print_table(("setting (--set key=value)", "default", "type", "meaning"), settings)
        else:
            print_line(f"{method.name} has no settings.")

    listed = [row._asdict() for row in settings]
    return Output({"method": method.name, "settings": listed}, show)


def _all_methods() -> Output:
    """List the methods by group; plug-ins come last."""
    keys, tables = ("name", "title", "reference"), {}
    for group, names in methods.GROUPS.items():
        tables[group] = [tuple(getattr(methods.find_method(name), key) for key in keys) for name in names]
    tables["plug-ins"] = methods.plug_in_rows()

    def show() -> None:
        for group, rows in tables.items():
            if rows:
                print_line()
                print_line(f"{group}:")
                print_table(("method", "description", "reference"), rows)

    listed = [{"group": group, **dict(zip(keys, row, strict=True))} for group, rows in tables.items() for row in rows]
    return Output({"methods": listed}, show)


@with_json
def check(
    learner: Annotated[str, argument("Learner: module:Class, or a name from `graphfcl methods`.", method_names)],
    settings: Settings = None,
) -> Output:
    """Check that a learner satisfies the Learner contract; print a line per rule, and why if it is broken."""
    from graphfcl.methods.testing import RULES, broken_rules, says

    method = methods.method_from(learner, learner)
    changes = settings_from_options(settings)
    method.settings_with(changes)
    rules = []
    for rule, why in broken_rules(method.learner, changes):
        print(f"{'ok    ' if why is None else 'BROKEN'}  {says(rule)}", flush=True)
        if why is not None:
            print(f"        {why}", flush=True)
        rules.append({"rule": says(rule), "broken": why})
    broken = sum(each["broken"] is not None for each in rules)
    verdict = f"breaks {broken} of {len(RULES)} rules" if broken else f"keeps all {len(RULES)} rules"
    values = {"learner": method.name, "rules": rules, "keeps_all": not broken}
    return Output(values, lambda: print(f"{method.name} {verdict}."), code=1 if broken else 0)
