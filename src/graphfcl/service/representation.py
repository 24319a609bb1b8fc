"""Compression, conditional requests (304) and HEAD requests."""

import gzip
import hashlib
import re
from functools import lru_cache

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST = 1_000  # bytes from which on an answer is compressed
COMPRESSED = ("application/json", "text/", "image/svg")
GZIP = re.compile(r"(?:^|,)\s*(?:gzip|\*)\s*(?:;\s*q=(?P<weight>[0-9.]+)\s*)?(?=,|$)", re.IGNORECASE)
TAG = re.compile(r'(?:W/)?("[^"]*")')


def tag_of(content: bytes) -> str:
    """A hash of the content, for an ``ETag``."""
    return hashlib.blake2b(content, digest_size=8).hexdigest()


class Representation:
    """ASGI middleware. It buffers each answer completely; the service streams none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, messages = scope["method"], list[Message]()

        async def keep(message: Message) -> None:
            messages.append(message)

        if method == "HEAD":
            scope["method"] = "GET"  # so that routes need not handle HEAD
        try:
            await self._app(scope, receive, keep)
        finally:
            scope["method"] = method
        start, content = messages[0], b"".join(message.get("body", b"") for message in messages[1:])
        headers, sent = Headers(scope=scope), MutableHeaders(raw=[*start.get("headers", ())])
        status = start["status"]
        if method in ("GET", "HEAD") and status == 200 and _has(headers.get("if-none-match"), sent.get("etag")):
            status, content = 304, b""
            del sent["content-length"], sent["content-type"]
        elif status == 200 and sent.get("content-type", "").startswith(COMPRESSED):
            sent.add_vary_header("Accept-Encoding")
            if len(content) >= SMALLEST and _takes_gzip(headers.get("accept-encoding", "")):
                content = _compressed(content, kept=sent.get("cache-control") == "no-cache")
                sent["content-encoding"], sent["content-length"] = "gzip", str(len(content))
                if "etag" in sent:
                    sent["etag"] = f"W/{sent['etag']}"  # weak: the compressed bytes differ
        await send({**start, "status": status, "headers": sent.raw})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else content})


def _has(wanted: str | None, tag: str | None) -> bool:
    """Whether the client already has the content of a tag. wanted: the header ``If-None-Match``."""
    if wanted is None or tag is None:
        return False
    return wanted.strip() == "*" or tag in TAG.findall(wanted)


def _takes_gzip(accepted: str) -> bool:
    match = GZIP.search(accepted)
    try:
        return match is not None and float(match["weight"] or 1) > 0
    except ValueError:
        return False


def _compressed(content: bytes, *, kept: bool) -> bytes:
    """Compress with gzip. kept: a file of the page, which is compressed only once."""
    return _compressed_once(content) if kept else gzip.compress(content, 4, mtime=0)


@lru_cache(maxsize=128)
def _compressed_once(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)
