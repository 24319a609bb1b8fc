"""How answers are sent: compressed, not again to whom has them, and for HEAD without a body."""

import gzip
import http.client

import pytest

from graphfcl.service.app import STATIC
from tests.service.servers import Client

LONG = "/v1/nodes?limit=150"


def test_long_answers_are_compressed_for_those_who_take_it(shared: Client) -> None:
    plain = shared.get(LONG)
    small = shared.get(LONG, **{"Accept-Encoding": "br, gzip"})
    assert small.headers["content-encoding"] == "gzip"
    assert small.headers["vary"] == plain.headers["vary"] == "Accept-Encoding"
    assert gzip.decompress(small.content) == plain.content
    assert len(small.content) < len(plain.content) / 3
    assert int(small.headers["content-length"]) == len(small.content)
    assert small.headers["etag"] == f"W/{plain.headers['etag']}"
    for accepted in ("identity", "gzip;q=0", "br", "gzip;q=x", "gzipped", ""):
        assert "content-encoding" not in shared.get(LONG, **{"Accept-Encoding": accepted}).headers, accepted
    for accepted in ("*", "gzip; q=0.5, br", "GZIP"):
        assert shared.get(LONG, **{"Accept-Encoding": accepted}).headers["content-encoding"] == "gzip", accepted
    assert "content-encoding" not in shared.get("/healthz", **{"Accept-Encoding": "gzip"}).headers, "it is short"
    body = {"ids": [f"n{number}" for number in range(20, 200)]}
    assert gzip.decompress(shared.send("POST", "/v1/predictions", body, {"Accept-Encoding": "gzip"}).content)


def test_what_a_client_has_is_not_sent_again(server: Client, free: list[str]) -> None:
    for path in (LONG, "/v1/model", "/", "/static/app.js", "/healthz", "/v1/nodes/n20"):
        for accepted in ("identity", "gzip"):
            tag = server.get(path, **{"Accept-Encoding": accepted}).headers["etag"]
            for wanted in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
                again = server.get(path, **{"If-None-Match": wanted})
                assert (again.status, again.content) == (304, b""), path
                assert not {"content-type", "content-length", "content-encoding"} & again.headers.keys()
                assert again.headers["etag"] == tag.removeprefix("W/")
                assert "content-security-policy" in again.headers
            assert server.get(path, **{"If-None-Match": '"other"'}).status == 200
    tag = server.get("/v1/model").headers["etag"]
    learned = server.teach("new", free[:2], {"If-Match": tag, "If-None-Match": "*"})
    assert learned.status == 200, "the tag of an answer names its version"
    assert server.get("/v1/model", **{"If-None-Match": tag}).status == 200
    assert server.teach("new", free[2:3], {"If-Match": tag}).status == 412
    assert server.get("/v1/nodes/nobody", **{"If-None-Match": "*"}).status == 404


def test_answers_of_one_version_have_tags_of_their_own(shared: Client) -> None:
    """Otherwise a client that once read ``computing`` would never see the result."""
    tags = {shared.get(f"/v1/suggestions?budget={budget}").headers["etag"] for budget in (3, 3, 3)}
    first = shared.get("/v1/suggestions?budget=4")
    assert first.json["status"] == "computing"
    answer = first
    while answer.json["status"] == "computing":
        answer = shared.get("/v1/suggestions?budget=4")
    assert answer.headers["etag"] != first.headers["etag"]
    assert all(tag.startswith('"1-') for tag in tags)


@pytest.mark.parametrize("path", [LONG, "/", "/healthz", "/metrics", "/v1/nodes/nobody", "/openapi.json"])
def test_head_is_get_without_the_body(shared: Client, path: str) -> None:
    whole, head = shared.get(path), shared.send("HEAD", path)
    assert (head.status, head.content) == (whole.status, b"")
    if path != "/metrics":
        assert head.headers["content-length"] == str(len(whole.content))
    assert head.headers.get("etag") == whole.headers.get("etag")
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=20)
    for method in ("HEAD", "GET"):  # on one connection
        connection.request(method, path, headers={"Authorization": f"Bearer {shared.token}"})
        answer = connection.getresponse()
        assert answer.status == whole.status
        content = answer.read()
    assert content == whole.content or path == "/metrics"
    connection.close()
    assert shared.send("HEAD", "/v1/labels/none").status == 404


def test_the_page_is_small_on_its_way(shared: Client) -> None:
    names = [path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js")]
    sizes = [len(shared.get(f"/static/{name}", **{"Accept-Encoding": "gzip"}).content) for name in names]
    assert sum(sizes) < sum((STATIC / name).stat().st_size for name in names) / 2.5
