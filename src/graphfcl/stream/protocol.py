"""The rules of a stream: how classes and nodes are split, what is visible when, what is evaluated."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from numbers import Integral
from typing import Any, Literal, get_args

from graphfcl.errors import InputError, shown
from graphfcl.graph.ids import ClassLabel, text_of

ProtocolName = Literal["strict", "paper"]
Track = Literal["transductive", "isolated", "open", "active"]
CANDIDATE_SHARE = 0.3  # of the nodes of every class, under the track ``active``
ClassOrder = Literal["size", "random"]
PROTOCOL_VERSION = 3  # raised whenever results change meaning: what learners see, how they are evaluated
Classes = int | tuple[ClassLabel, ...]


@dataclass(frozen=True)
class Protocol:
    """Everything that two results must share to be compared, except the graph and the seed.

    base, pseudo_novel, novel: how many classes play each part, or their names. ``novel=None`` takes all that are left.
    way, shot: N new classes per session with K supports each; the last session may be smaller. Under
        ``pool_as_supports`` a class has at least K.
    sessions: at most so many novel sessions; None runs all that the classes allow.
    name: ``strict``, or ``paper``, whose sessions carry query labels.
    track: what of the graph is visible: ``transductive``, ``isolated`` or ``open``. Under ``active`` all is visible as
        under ``open``, and the labels of a session are those of candidates that a strategy names.
    class_order: ``size`` makes the largest classes base, ``random`` draws them.
    min_class_size: classes with fewer nodes play no part.
    train_share, validation_share: node split of base and pseudo-novel classes; the others are test nodes.
    pool_share: share of a novel class, supports aside, whose labels only upper references may see.
    queries: under ``paper``, the sampled queries per class (None: ``drawn_shot``). ``strict`` asks about all test
        nodes.
    standardise: dense features have mean 0 and deviation 1 over the train nodes of session 0.
    split_shot: choose classes and test nodes as for this K (None: ``shot``). Streams that differ in ``shot`` alone
        then share classes, test nodes and visible graphs, and their supports are nested; nodes that only a larger
        ``shot`` makes supports are in the pool.
    pool_as_supports: the whole pool joins the supports.
    protocol_version: of the protocol as a whole: what learners see and how they are evaluated. Always
        ``PROTOCOL_VERSION``; saved streams and results of other versions are refused.
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
            if isinstance(getattr(self, field), tuple | list):  # the class 3 and the class "3" are one
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
        """Candidates come from the train nodes of classes of session 0, and from supports and pool of novel ones."""
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
        """The K that classes and test nodes are chosen for."""
        return self.shot if self.split_shot is None else self.split_shot

    @property
    def hash(self) -> str:
        """Twelve hex digits that differ whenever any rule differs."""
        return hashlib.sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:12]

    def as_json(self) -> dict[str, Any]:
        """Plain values for a JSON file; ``split_shot`` and ``pool_as_supports`` only where they are set."""
        values = asdict(self)
        for rule in ("split_shot", "pool_as_supports"):
            if not values[rule]:
                del values[rule]
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Protocol":
        refuse_other_version(values.get("protocol_version"), "the protocol", "draw the stream again from its seed")
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"the protocol has an unknown rule {sorted(unknown)[0]!r}: a newer version wrote it.")
        fitting: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
        return cls(**fitting)


def refuse_other_version(version: Any, what: str, remedy: str) -> None:
    """Raise an InputError unless ``version`` is the protocol version of this graphfcl.

    version: None for a file that stores none. what: the thing that is of this version.
    remedy: what to do about it.
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
