"""Requests that somebody sends who means no good, and those of a browser that was led astray."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.servers import Answer, Client, Servers

TEACH = json.dumps({"labels": [{"id": "n20", "class": "x"}]}).encode()


@pytest.fixture(autouse=True)
def nothing_changes(shared: Client) -> Iterator[None]:
    yield
    assert shared.get("/v1/model").json["version"] == 1
    assert shared.get("/readyz").status == 200


def problem(answer: Answer, status: int) -> None:
    assert answer.status == status, answer.content
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.json["detail"]) < 1000


@pytest.mark.parametrize("token", [None, "", "wrong", "token-of-the-tests-012345678", "é" * 30])
def test_a_change_needs_the_token(shared: Client, token: str | None) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}".encode().decode("latin-1")}
    client = Client(shared.port, token=None)
    for method, path in (
        ("POST", "/v1/labels"), ("DELETE", "/v1/labels"), ("POST", "/v1/nodes"), ("POST", "/v1/edges"),
        ("PATCH", "/v1/classes/class-00"), ("DELETE", "/v1/classes/class-00"), ("POST", "/v1/classes/class-00/merge"),
        ("POST", "/v1/versions/1/rollback"), ("POST", "/v1/groups/1/name"), ("PUT", "/anything"),
    ):  # fmt: skip
        answer = client.send(method, path, headers=headers, raw=TEACH)
        problem(answer, 401)
        assert "www-authenticate" in answer.headers
    assert client.node("n20").status == 200, "reading needs none on this machine"
    assert client.send("POST", "/v1/predictions", {"ids": ["n20"]}).status == 200


def test_reading_needs_it_too_where_others_can_connect(servers: Servers, folder: Path) -> None:
    client = servers.start(folder, host="0.0.0.0")
    anonymous = Client(client.port, token=None)
    for path in ("/v1/model", "/v1/nodes/n20", "/metrics", "/openapi.json", "/v1/nodes?q=a", "/nothing"):
        problem(anonymous.get(path), 401)
    problem(anonymous.send("POST", "/v1/predictions", {"ids": ["n20"]}), 401)
    assert anonymous.get("/healthz").status == 200
    assert anonymous.get("/").status != 401, "the page asks for the token itself"
    assert client.get("/v1/model").status == 200
    problem(client.get("/v1/model", Host="evil.example"), 421)


@pytest.mark.parametrize(
    "host",
    [
        "evil.example", "127.0.0.1.evil.example", "evil.example:8765", "[", "", "localhost@evil", "evil.com@127.0.0.1",
        "127.0.0.1/evil.com", "127.0.0.1?evil.com", "127.0.0.1#evil.com", "127.0.0.1:", "127.0.0.1:80:80", "::1",
    ],
)  # fmt: skip
def test_other_names_are_refused(shared: Client, host: str) -> None:
    problem(shared.get("/v1/model", Host=host), 421)


def test_names_of_this_machine_are_taken(shared: Client) -> None:
    for host in ("localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8765"):
        assert shared.get("/v1/model", Host=host).status == 200
    two = b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n"
    assert b" 400 " in shared.plain(two).splitlines()[0]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", "http://[::1"]
)
def test_pages_of_other_sites_are_refused(shared: Client, origin: str) -> None:
    problem(shared.send("POST", "/v1/labels", headers={"Origin": origin}, raw=TEACH), 403)
    problem(shared.send("POST", "/v1/predictions", headers={"Origin": origin}, raw=b'{"ids":["n20"]}'), 403)
    problem(shared.send("POST", "/v1/labels", headers={"Sec-Fetch-Site": "cross-site"}, raw=TEACH), 403)
    for site in ("cross-site", "same-site"):
        for path in ("/v1/nodes/n20", "/v1/suggestions", "/v2/models/model"):
            problem(shared.get(path, **{"Sec-Fetch-Site": site}), 403)
        assert shared.get("/", **{"Sec-Fetch-Site": site}).status == 200, "a link to the page"
        assert shared.get("/v2/health/live", **{"Sec-Fetch-Site": site}).status == 200
    assert shared.get("/v1/model", **{"Sec-Fetch-Site": "none"}).status == 200, "typed by somebody"
    own = {"Origin": f"http://127.0.0.1:{shared.port}", "Sec-Fetch-Site": "same-origin"}
    assert shared.send("POST", "/v1/predictions", {"ids": ["n20"]}, own).status == 200


def test_a_form_is_refused(shared: Client) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        problem(shared.send("POST", "/v1/labels", headers={"Content-Type": kind}, raw=TEACH), 415)


def test_what_a_browser_may_do(shared: Client) -> None:
    for path in ("/v1/model", "/nothing", "/", "/healthz"):
        headers = shared.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_bodies_that_are_too_large(shared: Client) -> None:
    large = b'{"labels":[' + b" " * (1 << 20) + b"]}"
    problem(shared.send("POST", "/v1/labels", raw=large), 413)
    head = (
        f"POST /v1/labels HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {shared.token}\r\n"
        "Content-Type: application/json\r\n"
    ).encode()
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    answer = shared.plain(head + b"Transfer-Encoding: chunked\r\n\r\n" + piece * 17 + b"0\r\n\r\n")
    assert b" 413 " in answer.splitlines()[0]
    both = head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    answer = shared.plain(both + b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert b" 400 " in answer.splitlines()[0]
    assert b"connection: close" in answer.lower()
    assert answer.count(b"HTTP/1.1 ") == 1, "nothing behind it is answered"
    for length in (b"99999999999999999999", b"-1", b"1e3", b"0x10"):
        answer = shared.plain(head + b"Content-Length: " + length + b"\r\n\r\n")
        assert answer.split(b" ")[1] in (b"413", b"400")


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'"labels"', b"[" * 200_000, b'{"a":' * 100_000, b"{}",
        b'{"labels":[]}', b'{"labels":[{"id":NaN,"class":"x"}]}', b'{"labels":[{"id":1.5,"class":"x"}]}',
        b'{"labels":[{"id":true,"class":"x"}]}', b'{"labels":[{"id":"n20"}]}', b'{"labels":[{"id":"n20","class":""}]}',
        b'{"labels":[{"id":"n20","class":7}]}', b'{"labels":[{"id":null,"class":"x"}]}',
        b'{"labels":[{"id":"n20","class":"x"}],"more":1}', b'{"labels":[{"id":"\\ud800","class":"x"}]}',
        b'{"labels":[{"id":"n20","class":"\\ud800"}]}', b'{"labels":[{"id":"n20","class":"\\u0000"}]}',
        b'{"labels":[{"id":' + b"9" * 5000 + b',"class":"x"}]}',
        b'{"labels":[{"id":"' + b"a" * 1_000_000 + b'","class":"x"}]}',
        b'{"labels":[{"id":"n20","class":"' + b"a" * 201 + b'"}]}',
    ],
    ids=lambda body: f"{body[:40]!r}-{len(body)}",
)  # fmt: skip
def test_broken_bodies(shared: Client, body: bytes) -> None:
    answer = shared.send("POST", "/v1/labels", raw=body)
    assert answer.status in (400, 404, 409, 422), answer.content
    problem(answer, answer.status)
    if body.startswith((b"[[", b'{"a":{"a"')) or b"9999" in body:
        assert answer.status in (400, 422)
        assert "There was an error" not in answer.json["detail"]


def test_numbers_that_are_none(shared: Client) -> None:
    for body in (
        b'{"sources":["n20"],"targets":["n21"],"weights":[NaN]}',
        b'{"sources":["n20"],"targets":["n21"],"weights":[Infinity]}',
        b'{"sources":["n20"],"targets":["n21"],"weights":[1e999]}',
        b'{"sources":["n20"],"targets":["n21"],"weights":[]}',
    ):
        answer = shared.send("POST", "/v1/edges", raw=body)
        problem(answer, answer.status)
        assert answer.status in (400, 422)
    problem(shared.send("POST", "/v1/nodes", raw=b'{"ids":["new"],"features":[[NaN]]}'), 422)
    problem(shared.send("POST", "/v1/nodes", raw=b'{"ids":["new"],"features":[{"feature_0":1e999}]}'), 422)


@pytest.mark.parametrize(
    "path",
    [
        "/v1/nodes/", "/v1/nodes//neighbours", "/v1/nodes/%00", "/v1/nodes/a/b", "/v1/nodes/../../etc/passwd",
        "/v1/nodes/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd",
        "/static/..%2fapp.py", "/static/", "/v1/nodes/" + "a" * 5000, "//evil.example/v1/model", "/v1/model/",
        "/v1/classes/nothing", "/v1/versions/1/rollback", "/docs", "/redoc", "/v1/nodes/%F0%9F%A6%80",
    ],
)  # fmt: skip
def test_addresses_of_nothing(shared: Client, path: str) -> None:
    answer = shared.get(path)
    problem(answer, 405 if path.endswith("rollback") else 404)


def test_addresses_that_are_no_text(shared: Client) -> None:
    problem(shared.get("/v1/nodes/%FF%FE"), 400)
    for query in ("limit=0", "limit=-1", "limit=x", "limit=151", f"q={'a' * 1001}"):
        answer = shared.get(f"/v1/nodes?{query}")
        assert answer.status in (413, 422)
        problem(answer, answer.status)
    problem(shared.get("/v1/nodes/n20?limit=%zz"), 422)
    assert b" 400 " in shared.plain(b"\x00\x01\x02\r\n\r\n").splitlines()[0]
    try:
        reply = shared.plain(b"GET /v1/model HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000 + b"\r\n\r\n")
    except ConnectionError:  # refused while it was still being sent
        reply = b""
    assert not reply or reply.split(b" ")[1] in (b"400", b"431")
