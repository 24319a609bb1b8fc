"""``graphfcl methods`` and ``graphfcl check``."""

from typing import Annotated

import graphfcl.methods as methods
from graphfcl.cli.completion import method_names
from graphfcl.cli.options import Settings, argument, settings_from_options
from graphfcl.cli.output import Answer, answers, print_table, say


@answers
def list_methods(
    name: Annotated[str | None, argument("Show the settings of this method.", method_names)] = None,
) -> Answer:
    """List all methods, including plug-ins, or the settings of one method with their defaults."""
    if name is None:
        return _all_methods()
    method = methods.method_from(name, name)
    settings = method.settings_rows()

    def show() -> None:
        if settings:
            print_table(("setting (--set key=value)", "default", "kind", "what it is"), settings)
        else:
            say(f"{method.name} has no settings.")

    listed = [row._asdict() for row in settings]
    return Answer({"method": method.name, "settings": listed}, show)


def _all_methods() -> Answer:
    keys, tables = ("name", "title", "reference"), {}
    for group, names in methods.GROUPS.items():
        tables[group] = [tuple(getattr(methods.find_method(name), key) for key in keys) for name in names]
    tables["plug-ins"] = methods.plug_in_rows()

    def show() -> None:
        for group, rows in tables.items():
            if rows:
                say()
                say(f"{group}:")
                print_table(("method", "what", "reference"), rows)

    listed = [{"group": group, **dict(zip(keys, row, strict=True))} for group, rows in tables.items() for row in rows]
    return Answer({"methods": listed}, show)


@answers
def check(
    learner: Annotated[str, argument("Learner: module:Class, or a name from `graphfcl methods`.", method_names)],
    settings: Settings = None,
) -> Answer:
    """Check that a learner satisfies the Learner contract; prints one line per rule."""
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
    return Answer(values, lambda: print(f"{method.name} {verdict}."), code=1 if broken else 0)
