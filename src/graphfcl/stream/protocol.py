"""The protocol of a stream: how classes and nodes are split, what learners see, and what is evaluated."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, Literal, get_args

from graphfcl.errors import InputError, shown
from graphfcl.graph.ids import ClassLabel, text_of

ProtocolName = Literal["strict", "paper"]
Track = Literal["transductive", "isolated", "open", "active"]
CANDIDATE_SHARE = 0.3  # share of each class that strategies may choose from on the track ``active``
ClassOrder = Literal["size", "random"]
PROTOCOL_VERSION = 3  # increased whenever learners see something else or are evaluated in another way
Classes = int | tuple[ClassLabel, ...]


@dataclass(frozen=True)
class Protocol:
    """Rules of a stream. Results are comparable only if their protocols are equal.

    Args:
        base: Number of base classes, or their names. Base classes have many labels in session 0.
        pseudo_novel: Number of pseudo-novel classes, or their names. They also have many labels in session 0, and
            learners may practise later sessions on them.
        novel: Number of novel classes, or their names. None takes all classes that are left.
        way: Number N of new classes in each session. The last session may have fewer.
        shot: Number K of supports of each new class.
        sessions: Maximum number of novel sessions. None runs as many as the classes allow.
        name: ``strict``, or ``paper``, whose sessions contain query labels.
        track: What of the graph is visible. ``transductive``: the nodes of all classes seen so far. ``isolated``: while
            learning, only the nodes of the session. ``open``: all nodes from the start. ``active``: as ``open``, and a
            strategy chooses the nodes that get labels.
        class_order: ``size`` takes the largest classes as base classes, ``random`` draws them.
        min_class_size: Minimum number of nodes of a class. Smaller classes are not used.
        train_share: Share of training nodes in base and pseudo-novel classes.
        validation_share: Share of validation nodes in these classes. All other nodes are test nodes.
        pool_share: Share of each novel class, without its supports, that forms the pool. Only learners that serve as
            upper references may see labels of the pool.
        queries: Number of sampled queries per class under ``paper``. None takes ``drawn_shot``. Under ``strict`` all
            test nodes are queries.
        standardise: Whether dense features are standardised to mean 0 and standard deviation 1 over the training nodes
            of session 0.
        split_shot: K for which classes and test nodes are chosen. None takes ``shot``. Streams that differ only in
            ``shot`` then have the same classes, test nodes and visible graphs, and nested supports. Nodes that are
            supports only for a larger ``shot`` are in the pool.
        pool_as_supports: Whether the whole pool is added to the supports. A class then has at least K supports.
        protocol_version: Version of the evaluation rules, always ``PROTOCOL_VERSION``. Saved streams and results of
            other versions are refused.

    Raises:
        InputError: If a value is out of range, or two rules contradict each other.

    Examples:
        >>> from graphfcl import Protocol
        >>> protocol = Protocol(base=20, pseudo_novel=10, way=2, shot=5)
        >>> protocol.track, protocol.shows_all
        ('transductive', False)
    """

    base: Classes
    pseudo_novel: Classes
    novel: Classes | None = None
    way: int = 2
    shot: int = 5
    sessions: int | None = None
    name: ProtocolName = "strict"
    track: Track = "transductive"
    class_order: ClassOrder = "size"
    min_class_size: int = 0
    train_share: float = 0.6
    validation_share: float = 0.2
    pool_share: float = 0.3
    queries: int | None = None
    standardise: bool = True
    split_shot: int | None = None
    pool_as_supports: bool = False
    protocol_version: int = PROTOCOL_VERSION

    def __post_init__(self) -> None:
        refuse_other_version(self.protocol_version, "the protocol", "leave protocol_version out")
        for field in ("base", "pseudo_novel", "novel"):
            if isinstance(getattr(self, field), tuple | list):  # the class 3 and the class "3" are the same
                object.__setattr__(self, field, tuple(map(text_of, getattr(self, field))))
        for field, allowed in (("name", ProtocolName), ("track", Track), ("class_order", ClassOrder)):
            if getattr(self, field) not in get_args(allowed):
                listed = ", ".join(get_args(allowed))
                raise InputError(f"{field} is {getattr(self, field)!r}; it must be one of {listed}.")
        for field, least in (("base", 1), ("pseudo_novel", 0), ("novel", 1), ("way", 1), ("shot", 1)):
            _at_least(field, getattr(self, field), least)
        for field in ("sessions", "queries", "split_shot"):
            _at_least(field, getattr(self, field), 1)
        for field in ("standardise", "pool_as_supports"):
            if not isinstance(getattr(self, field), bool):
                raise InputError(f"{field} is {shown(getattr(self, field))}; it must be true or false.")
        if self.train_share <= 0 or self.validation_share < 0 or self.train_share + self.validation_share >= 1:
            raise InputError("train_share and validation_share must be shares that leave some nodes for the test.")
        if not 0 <= self.pool_share < 1:
            raise InputError(f"pool_share is {self.pool_share}; it must be at least 0 and below 1.")
        if self.shot > self.drawn_shot:
            raise InputError(
                f"shot is {self.shot}, but classes and test nodes are chosen for {self.drawn_shot}: raise split_shot."
            )
        if self.name == "paper" and self.track == "isolated":
            raise InputError(
                "the protocol 'paper' encodes old nodes again in every session, which the track 'isolated' rules out: "
                "take 'strict', or another track."
            )
        if self.track == "active":
            self._check_active()
        if self.queries is not None and self.name == "strict":
            raise InputError("queries cannot be set under 'strict', which asks about all test nodes: use 'paper'.")

    def _check_active(self) -> None:
        """Check that candidates fit into training nodes (session-0 classes) and into supports and pool (novel ones)."""
        if self.name == "paper":
            raise InputError("the track 'active' has no sessions with query labels: take the protocol 'strict'.")
        if self.pool_as_supports:
            raise InputError("the track 'active' has no pool, so pool_as_supports cannot be set: take another track.")
        for share in ("train_share", "pool_share"):
            if getattr(self, share) < CANDIDATE_SHARE:
                raise InputError(
                    f"{share} is {getattr(self, share)}, but the track 'active' needs {CANDIDATE_SHARE} or more of it: "
                    "raise it, or take another track."
                )

    @property
    def shows_all(self) -> bool:
        """Whether every node and edge is visible from the start."""
        return self.track in ("open", "active")

    @property
    def drawn_shot(self) -> int:
        """K for which classes and test nodes are chosen."""
        return self.shot if self.split_shot is None else self.split_shot

    @property
    def hash(self) -> str:
        """Twelve hexadecimal digits that identify the protocol."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:12]

    def as_json(self) -> dict[str, Any]:
        """Return values for JSON, with ``split_shot`` and ``pool_as_supports`` only if they are set."""
        values = asdict(self)
        for rule in ("split_shot", "pool_as_supports"):
            if not values[rule]:
                del values[rule]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Protocol":
        """Read a protocol from the values of :meth:`as_json`.

        Args:
            values: Values by the names of the rules.

        Returns:
            The protocol.

        Raises:
            InputError: If the values are of another protocol version, or name an unknown rule.
        """
        refuse_other_version(values.get("protocol_version"), "the protocol", "draw the stream again from its seed")
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"the protocol has an unknown rule {sorted(unknown)[0]!r}: a newer version wrote it.")
        fitting: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**fitting)


def refuse_other_version(version: Any, what: str, remedy: str) -> None:
    """Raise an InputError unless ``version`` is the protocol version of this graphfcl.

    Args:
        version: Version in a file; None if the file has none.
        what: Name of the file or object in the message.
        remedy: What the user should do.
    """
    if type(version) is not int or version != PROTOCOL_VERSION:
        named = "an older protocol version" if version is None else f"protocol version {version}"
        raise InputError(
            f"{what} is of {named}; this graphfcl evaluates under protocol version {PROTOCOL_VERSION}, and results of "
            f"different versions cannot be compared: {remedy}."
        )


def _at_least(field: str, value: Classes | None, least: int) -> None:
    size = len(value) if isinstance(value, tuple) and field in ("base", "pseudo_novel", "novel") else value
    if size is not None and (isinstance(size, bool) or not isinstance(size, Integral)):
        raise InputError(f"{field} is {shown(value)}; it must be a whole number.")
    if size is not None and size < least:
        raise InputError(f"{field} is {size}; it must be at least {least}.")
    if isinstance(value, tuple) and len(set(value)) != len(value):
        raise InputError(f"{field} names a class twice; name each once.")
