"""Labels and history as CSV."""

import csv
import io

from tests.service.servers import Client


def table(server: Client, name: str) -> list[dict[str, str]]:
    answer = server.get(f"/v1/export/{name}.csv")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/csv")
    assert f'filename="{name}-' in answer.headers["content-disposition"]
    return list(csv.DictReader(io.StringIO(answer.content.decode())))


def test_labels_and_history_are_exported(server: Client, free: list[str]) -> None:
    before = len(table(server, "labels"))
    labels = [{"id": free[0], "class": "class-00", "reason": "In doubt", "note": 'so, "sure"\nof it'}]
    server.send("POST", "/v1/labels", {"labels": labels, "by": "ann"})
    server.teach("a, b", [free[1]], by="bob")
    rows = table(server, "labels")
    assert len(rows) == before + 2
    by_node = {row["node"]: row for row in rows}
    first = by_node[free[0]]
    assert [first[name] for name in ("class", "part", "by", "reason", "note")] == [
        "class-00",
        "support",
        "ann",
        "In doubt",
        'so, "sure" of it',
    ]
    assert first["when"]
    labels = [{"id": free[2], "class": "class-00", "note": "=1+1"}]
    server.send("POST", "/v1/labels", {"labels": labels, "by": "@eve"})
    (risky,) = [row for row in table(server, "labels") if row["node"] == free[2]]
    assert (risky["by"], risky["note"]) == ("'@eve", "'=1+1"), "no formula for a spreadsheet"
    assert by_node[free[1]]["class"] == "a, b"
    history = table(server, "history")
    assert [row["version"] for row in history] == ["1", "2", "3", "4"]
    assert [row["by"] for row in history] == ["", "ann", "bob", "'@eve"]
    assert history[2]["classes"] == "a, b"
    assert server.get("/v1/versions").json["versions"][0]["by"] == ["@eve"]
