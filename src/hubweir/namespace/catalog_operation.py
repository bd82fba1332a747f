"""Operations of the catalog as its log's records: one version byte, then a MessagePack map with its type.

| operation         | meaning |
|-------------------|---------|
| DescribeNamespace | what the namespace is from now on: names, profile, rules, units; the first operation |
| IntendCreate      | an entity is being made: its description, and where its logs go. It is not served yet |
| CommitCreate      | all its logs exist: it is served |
| ChangeEntity      | its description from now on, of the same kind and name |
| IntendDelete      | it is being removed: it is not served any more |
| CommitDelete      | all its logs are gone, and so is it |
| MoveLog           | one of its logs lies in another store from now on, whole |
| PutRule           | a rule of a subscription, in the place of the one of its name, or behind all others |
| RemoveRule        | a rule of a subscription is gone |
| RecordUsage       | what the namespace used in some hours, in place of what was known of them |

What belongs inside an entity, as subscriptions do inside a topic, is gone with the operation that ends the entity. A
subscription has its first rule from its description. An entity is named by its id, so that one that was deleted and
made again is another. A description is a map with the kind as its type (kinds.py). Fields may be added with a default;
a type or version that is not known is refused with the log untouched (rule R16).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from hubweir.errors import CorruptStore, NewerFormat, OldFormat
from hubweir.namespace.entity import Entity, Placement
from hubweir.namespace.kinds import Description
from hubweir.namespace.namespace_description import NamespaceDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.subscription_rule import SubscriptionRuleDescription

# 2 had event hubs alone, and no rules of subscriptions.
FORMAT_VERSION = 3

T = TypeVar("T")


class DescribeNamespace(msgspec.Struct, frozen=True, tag="describe-namespace"):
    """Whole, so that after a crash all of a change holds or none."""

    namespace: NamespaceDescription


class IntendCreate(msgspec.Struct, frozen=True, tag="intend-create"):
    """placements: description.log_count() of them."""

    entity_id: str
    description: Description
    placements: tuple[Placement, ...]


class CommitCreate(msgspec.Struct, frozen=True, tag="commit-create"):
    entity_id: str


class ChangeEntity(msgspec.Struct, frozen=True, tag="change-entity"):
    entity_id: str
    description: Description


class IntendDelete(msgspec.Struct, frozen=True, tag="intend-delete"):
    entity_id: str


class CommitDelete(msgspec.Struct, frozen=True, tag="commit-delete"):
    entity_id: str


class MoveLog(msgspec.Struct, frozen=True, tag="move-log"):
    """store_index: where the log lies from now on."""

    entity_id: str
    log_id: str
    store_index: int


class PutRule(msgspec.Struct, frozen=True, tag="put-rule"):
    """entity_id: of a subscription."""

    entity_id: str
    rule: SubscriptionRuleDescription


class RemoveRule(msgspec.Struct, frozen=True, tag="remove-rule"):
    """name: of the rule, in any case."""

    entity_id: str
    name: str


class RecordUsage(msgspec.Struct, frozen=True, tag="record-usage"):
    """hours: rows of counts, the first of each is the hour's start. Hours before oldest_hour_ms are forgotten."""

    hours: tuple[tuple[int, ...], ...]
    oldest_hour_ms: int


Operation = (
    DescribeNamespace
    | IntendCreate
    | CommitCreate
    | ChangeEntity
    | IntendDelete
    | CommitDelete
    | MoveLog
    | PutRule
    | RemoveRule
    | RecordUsage
)


class CatalogState(msgspec.Struct, frozen=True, tag="state"):
    """A snapshot of the whole catalog. version: how many operations made it.

    subscription_rules: by the id of the subscription, in the order they were made.
    """

    version: int
    namespace: NamespaceDescription
    entities: tuple[Entity[Description], ...]
    usage: tuple[tuple[int, ...], ...] = ()
    subscription_rules: dict[str, tuple[SubscriptionRuleDescription, ...]] = {}


def encode(value: Operation | CatalogState | Entity[Description]) -> bytes:
    """The bytes of an operation, a snapshot or an entity. They hold keys in clear: they go to the log, and to processes
    of ours that follow the catalog, and nowhere else."""
    return bytes((FORMAT_VERSION,)) + msgspec.msgpack.encode(value, enc_hook=reveal_secret)


def decode_operation(data: bytes | memoryview) -> Operation:
    """The operation in a record. Raises NewerFormat, OldFormat, or CorruptStore when it is none."""
    return _decode(_OPERATIONS, data)


def decode_state(data: bytes | memoryview) -> CatalogState:
    """The state in a snapshot. Raises NewerFormat, OldFormat, or CorruptStore when it is none."""
    return _decode(_STATES, data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes | memoryview) -> T:
    if not len(data):
        raise CorruptStore("an empty record in the catalog")
    if data[0] != FORMAT_VERSION:
        other = NewerFormat if data[0] > FORMAT_VERSION else OldFormat
        raise other(f"the catalog has records of format {data[0]}; this version reads {FORMAT_VERSION}")
    try:
        return decoder.decode(data[1:])
    except msgspec.MsgspecError as error:
        raise CorruptStore(f"a record of the catalog cannot be read: {error}") from None


def reveal_secret(value: object) -> str:
    """As msgspec's encoders ask for it: a key in clear."""
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"the catalog does not hold {type(value).__name__}")


def hide_secret(kind: type, value: object) -> Secret:
    """As msgspec's decoders ask for it: a text where a key has to stand."""
    if kind is Secret and isinstance(value, str):
        return Secret(value)
    raise TypeError(f"{kind.__name__} expected")


_OPERATIONS: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation, dec_hook=hide_secret)
_STATES = msgspec.msgpack.Decoder(CatalogState, dec_hook=hide_secret)
