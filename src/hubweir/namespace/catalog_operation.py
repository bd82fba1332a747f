"""What each record of the catalog's log says, as bytes: one version byte, then a MessagePack map with its type.

| operation       | meaning |
|-----------------|---------|
| NameNamespace   | the namespace has this name; the first operation |
| IntendCreate    | a hub is being made: its description, and where its partitions go. It is not served yet |
| CommitCreate    | all its partitions exist: it is served |
| IntendDelete    | it is being removed: it is not served any more |
| CommitDelete    | all its partitions are gone, and so is it |
| ChangeHub       | retention, durability, availability, user metadata, capture |
| SetGroups       | the consumer groups of a hub |
| SetRevoked      | the publishers of a hub that may not send |
| SetRules        | the authorization rules of the namespace, or of a hub |
| SetUnits        | the throughput units of the namespace |
| RecordUsage     | what the namespace used in some hours, in place of what was known of them |

A hub is named by its id, so that a hub that was deleted and made again is another one. Fields may be added with a
default; a type or version that is not known is refused with the log untouched (rule R16).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from hubweir.errors import CorruptStore, NewerFormat
from hubweir.messaging_store.log import Durability
from hubweir.namespace.capture_description import CaptureDescription
from hubweir.namespace.descriptions import (
    AuthorizationRuleDescription,
    Availability,
    EventHubDescription,
    GroupDetails,
    UnitsDescription,
)
from hubweir.namespace.event_hub_entry import EventHubEntry, Placement
from hubweir.namespace.secret import Secret

FORMAT_VERSION = 1

T = TypeVar("T")


class NameNamespace(msgspec.Struct, frozen=True, tag="name-namespace"):
    name: str
    created_at_ms: int


class IntendCreate(msgspec.Struct, frozen=True, tag="intend-create"):
    hub_id: str
    description: EventHubDescription
    placements: tuple[Placement, ...]


class CommitCreate(msgspec.Struct, frozen=True, tag="commit-create"):
    hub_id: str


class IntendDelete(msgspec.Struct, frozen=True, tag="intend-delete"):
    hub_id: str


class CommitDelete(msgspec.Struct, frozen=True, tag="commit-delete"):
    hub_id: str


class ChangeHub(msgspec.Struct, frozen=True, tag="change-hub"):
    """availability, user_metadata None: as they are. changed_at_ms 0: not noted, in records of older versions."""

    hub_id: str
    retention_ms: int
    durability: Durability
    availability: Availability | None = None
    user_metadata: str | None = None
    changed_at_ms: int = 0
    capture: CaptureDescription | None = None


class SetGroups(msgspec.Struct, frozen=True, tag="set-groups"):
    """details: of the one group that is made or changed, if any; those of groups that go are forgotten."""

    hub_id: str
    consumer_groups: tuple[str, ...]
    details: GroupDetails | None = None


class SetRevoked(msgspec.Struct, frozen=True, tag="set-revoked"):
    hub_id: str
    publishers: tuple[str, ...]


class SetRules(msgspec.Struct, frozen=True, tag="set-rules"):
    """hub_id None: of the namespace."""

    hub_id: str | None
    rules: tuple[AuthorizationRuleDescription, ...]


class SetUnits(msgspec.Struct, frozen=True, tag="set-units"):
    units: UnitsDescription


class RecordUsage(msgspec.Struct, frozen=True, tag="record-usage"):
    """hours: rows of counts, the first of each is the hour's start. Hours before oldest_hour_ms are forgotten."""

    hours: tuple[tuple[int, ...], ...]
    oldest_hour_ms: int


Operation = (
    NameNamespace
    | IntendCreate
    | CommitCreate
    | IntendDelete
    | CommitDelete
    | ChangeHub
    | SetGroups
    | SetRevoked
    | SetRules
    | SetUnits
    | RecordUsage
)


class CatalogState(msgspec.Struct, frozen=True, tag="state"):
    """A snapshot of the whole catalog. version: how many operations made it."""

    version: int
    name: str
    created_at_ms: int
    rules: tuple[AuthorizationRuleDescription, ...]
    hubs: tuple[EventHubEntry, ...]
    units: UnitsDescription = UnitsDescription()
    usage: tuple[tuple[int, ...], ...] = ()


def encode(value: Operation | CatalogState) -> bytes:
    """The bytes of an operation or a snapshot. They hold keys in clear: they go to the log and nowhere else."""
    return bytes((FORMAT_VERSION,)) + msgspec.msgpack.encode(value, enc_hook=_reveal)


def decode_operation(data: bytes | memoryview) -> Operation:
    """The operation in a record. Raises NewerFormat, or CorruptStore when it is none."""
    return _decode(_OPERATIONS, data)


def decode_state(data: bytes | memoryview) -> CatalogState:
    """The state in a snapshot. Raises NewerFormat, or CorruptStore when it is none."""
    return _decode(_STATES, data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes | memoryview) -> T:
    if not len(data):
        raise CorruptStore("an empty record in the catalog")
    if data[0] != FORMAT_VERSION:
        raise NewerFormat(f"the catalog has records of format {data[0]}; this version reads {FORMAT_VERSION}")
    try:
        return decoder.decode(data[1:])
    except msgspec.MsgspecError as error:
        raise CorruptStore(f"a record of the catalog cannot be read: {error}") from None


def _reveal(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"the catalog does not hold {type(value).__name__}")


def _hide(kind: type, value: object) -> Secret:
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"{kind.__name__} expected")


_OPERATIONS: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation, dec_hook=_hide)
_STATES = msgspec.msgpack.Decoder(CatalogState, dec_hook=_hide)
