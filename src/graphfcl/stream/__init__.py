"""From a graph to sessions that show a learner no query label and no future node."""

from graphfcl.stream.classes import adapt_protocol, suggest_protocol
from graphfcl.stream.protocol import PROTOCOL_VERSION, Protocol, refuse_other_version
from graphfcl.stream.saved import load_stream, save_stream, stream_hash
from graphfcl.stream.sessions import BaseSession, PaperSession, PooledSession, Session
from graphfcl.stream.stream import Queries, Stream, make_stream

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
