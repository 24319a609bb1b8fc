"""What a run shows when it is done."""

from itertools import groupby
from typing import Any

from graphfcl.cli.show import print_table
from graphfcl.metrics import active_metrics, session_metrics, stream_metrics


def print_result(result: dict[str, Any]) -> None:
    """The table of sessions and what it comes to."""
    if result["trained_on_query_labels"]:
        print("\nTRAINED ON QUERY LABELS (protocol 'paper'): compare only with results under the same mark.")
    if result["uses_pool_labels"]:
        print("\nUSES POOL LABELS: an upper reference, trained on labels that no other method receives.")
    if result["flags"]["control"]:
        print("\nA CONTROL: it measures what the protocol gives away, and is not compared with methods.")
    if result.get("needs_oracle"):
        print("\nNEEDS AN ORACLE: nodes are named by their class, which nobody knows before they are labelled.")
    metrics = [metric for metric in session_metrics() if "print" in metric.places]
    extra = ("labels", "novel_classes_found") if "strategy" in result else ()
    titles = tuple(name.replace("_", " ") for name in extra)
    columns = ("session", "classes", *titles, *(metric.title for metric in metrics), "seconds")
    rows = [
        (
            s["session"],
            s["classes"],
            *(s[name] for name in extra),
            *(metric.text(s[metric.name]) for metric in metrics),
            f"{s['seconds']:.2f}",
        )
        for s in result["sessions"]
    ]
    print_table(columns, rows, numbers=columns)
    for line in _stream_lines(result):
        print(line)
    if result["chosen"]:
        chosen = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in result["chosen"].items())
        print(f"Settled on: {chosen}.")
    pretraining = result["pretraining"]
    reused = (
        f" besides {pretraining['seconds']:.1f} s for the encoder, which was there" if pretraining["reused"] else ""
    )
    on_gpu = result["peak_gpu_memory_mb"]
    memory = f"{result['peak_memory_mb']:.0f} MB" + ("" if on_gpu is None else f", on the GPU {on_gpu:.0f} MB")
    print(f"{result['total_seconds']:.1f} s in all{reused}; peak memory {memory}.")
    kept = ", ".join(f"{kind} {size:,}" for kind, size in result["stored"].items() if size)
    print(f"Kept between sessions: {result['stored_bytes']:,} bytes ({kept}).")


def _stream_lines(result: dict[str, Any]) -> list[str]:
    """The figures of the whole stream; those with the same note stand in one line."""
    lines = []
    shown = [metric for metric in stream_metrics() if "print" in metric.places]
    for note, group in groupby(shown, key=lambda metric: metric.note):
        figures = "  ".join(f"{metric.title} {metric.text(result[metric.name])}" for metric in group)
        lines.append(f"{figures}  ({note})" if note else figures)
    if "strategy" in result:
        lines.append("  ".join(f"{metric.title} {metric.text(result[metric.name])}" for metric in active_metrics()))
    return lines
