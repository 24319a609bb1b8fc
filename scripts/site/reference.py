"""Pages of the Python reference, made from the public names of the package."""

from pathlib import Path

import graphfcl
from graphfcl.runtime.lazy_names import stub_places

GROUPS = {
    "production": ("A model", "A classifier that learns new classes over time, and its answers."),
    "datasets": ("Graphs by name", "Loading a graph by its name or path, and importing one to the disk."),
    "graph": ("Graphs", "What a graph is, and how one is made of tables, matrices, PyG and networkx."),
    "stream": ("Streams", "A graph cut into sessions, and the rules by which it is cut."),
    "evaluation": ("Evaluation", "Evaluating a learner on a stream."),
    "metrics": ("Metrics", "From confusion matrices to figures."),
    "methods": ("Methods", "The contract of a learner, and how methods are found."),
    "active": ("Strategies", "Which nodes to label next."),
    "experiments": ("Grids", "Many runs at once: all methods, graphs and seeds of a table."),
    "runtime": ("Tasks and workers", "Where work is done: here, in further processes, on a cluster."),
    "report": ("Figures", "Pictures of evaluations and models."),
    "trackers": ("Trackers", "Figures of a training for TensorBoard and MLflow."),
    "errors": ("Errors", "What is raised when something is wrong."),
}
FURTHER = "further"  # one page for all packages without a page of their own
OTHERS = ("Further names", "Everything else that is public.")
OPTIONS = """    options:
      heading_level: 2
      show_root_heading: true
      show_root_full_path: false
"""


def public_names() -> dict[str, list[str]]:
    """Return the public names by the package that defines them, in the order of the stub."""
    found: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, module in stub_places(Path(graphfcl.__file__)).items():
        if name in graphfcl.__all__:
            package = module.split(".")[1]
            found.setdefault(package if package in GROUPS else FURTHER, []).append(name)
    return found


def python_pages() -> dict[str, str]:
    """Return a page per package with its public names and their docstrings, and a page that lists all names."""
    pages, listed = {}, ["# Python\n\nEvery public name; all of them are imported from `graphfcl`.\n"]
    for group, names in public_names().items():
        if not names:
            continue
        title, what = GROUPS.get(group, OTHERS)
        page = f"{group}.md"
        listed.append(
            f"## [{title}]({page})\n\n{what}\n\n" + ", ".join(f"[`{name}`][graphfcl.{name}]" for name in names) + "\n"
        )
        shown = "\n".join(f"::: graphfcl.{name}\n{OPTIONS}" for name in names)
        pages[f"reference/python/{page}"] = f"# {title}\n\n{what}\n\n{shown}"
    return {"reference/python/index.md": "\n".join(listed), **pages}
