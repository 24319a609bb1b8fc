"""From a graph to sessions that show a learner no query label and no future node."""

from typing import TYPE_CHECKING

from graphfcl.lazy_names import lazy_names

if TYPE_CHECKING:
    from graphfcl.stream.classes import adapt_protocol, suggest_protocol
    from graphfcl.stream.protocol import PROTOCOL_VERSION, Protocol, refuse_other_version
    from graphfcl.stream.saved import load_stream, save_stream, stream_hash
    from graphfcl.stream.sessions import BaseSession, PaperSession, PooledSession, Session
    from graphfcl.stream.stream import Queries, Stream, make_stream

# Where each name lives: methods import sessions without the code that makes streams.
_PLACES = {
    "adapt_protocol": "classes",
    "suggest_protocol": "classes",
    "PROTOCOL_VERSION": "protocol",
    "Protocol": "protocol",
    "refuse_other_version": "protocol",
    "load_stream": "saved",
    "save_stream": "saved",
    "stream_hash": "saved",
    "BaseSession": "sessions",
    "PaperSession": "sessions",
    "PooledSession": "sessions",
    "Session": "sessions",
    "Queries": "stream",
    "Stream": "stream",
    "make_stream": "stream",
}

__all__ = [
    "PROTOCOL_VERSION",
    "BaseSession",
    "PaperSession",
    "PooledSession",
    "Protocol",
    "Queries",
    "Session",
    "Stream",
    "adapt_protocol",
    "load_stream",
    "make_stream",
    "refuse_other_version",
    "save_stream",
    "stream_hash",
    "suggest_protocol",
]

__getattr__ = lazy_names(__name__, _PLACES)
