"""The public names of ``graphfcl.stream``: type checkers and the package itself read this list."""

from graphfcl.stream.arrays import (
    save_arrays as save_arrays,
)
from graphfcl.stream.classes import (
    adapt_protocol as adapt_protocol,
    suggest_protocol as suggest_protocol,
)
from graphfcl.stream.protocol import (
    PROTOCOL_VERSION as PROTOCOL_VERSION,
    Protocol as Protocol,
    refuse_other_version as refuse_other_version,
)
from graphfcl.stream.saved import (
    load_stream as load_stream,
    save_stream as save_stream,
    session_zero_hash as session_zero_hash,
    stream_hash as stream_hash,
)
from graphfcl.stream.sessions import (
    BaseSession as BaseSession,
    PaperSession as PaperSession,
    PooledSession as PooledSession,
    Session as Session,
)
from graphfcl.stream.stream import (
    Queries as Queries,
    Stream as Stream,
    make_stream as make_stream,
)

__all__: list[str]
