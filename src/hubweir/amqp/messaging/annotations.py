"""The names that Azure's services and clients give meaning to, each with its type.

Sources: "Azure Event Hubs AMQP protocol" pages and the client libraries' constants. All are symbols on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Symbol, ULong

# Message annotations of a delivered event.
SEQUENCE_NUMBER: Final = Symbol("x-opt-sequence-number")
OFFSET: Final = Symbol("x-opt-offset")
ENQUEUED_TIME: Final = Symbol("x-opt-enqueued-time")
PARTITION_KEY: Final = Symbol("x-opt-partition-key")
PUBLISHER: Final = Symbol("x-opt-publisher")

# Delivery annotations of a link that asked for ENABLE_RECEIVER_RUNTIME_METRIC.
LAST_ENQUEUED_SEQUENCE_NUMBER: Final = Symbol("last_enqueued_sequence_number")
LAST_ENQUEUED_OFFSET: Final = Symbol("last_enqueued_offset")
LAST_ENQUEUED_TIME_UTC: Final = Symbol("last_enqueued_time_utc")
RUNTIME_INFO_RETRIEVAL_TIME_UTC: Final = Symbol("runtime_info_retrieval_time_utc")

# Properties of an attach; the producer's three also stand in the message annotations of its transfers.
EPOCH: Final = Symbol("com.microsoft:epoch")
RECEIVER_NAME: Final = Symbol("com.microsoft:receiver-name")
TIMEOUT: Final = Symbol("com.microsoft:timeout")
ENTITY_TYPE: Final = Symbol("com.microsoft:entity-type")
TRACKING_ID: Final = Symbol("com.microsoft:tracking-id")
PRODUCER_ID: Final = Symbol("com.microsoft:producer-id")
PRODUCER_EPOCH: Final = Symbol("com.microsoft:producer-epoch")
PRODUCER_SEQUENCE_NUMBER: Final = Symbol("com.microsoft:producer-sequence-number")

# Ours, for sinks that repeat their work after a failure: never sent to a peer that does not name them.
# docs/on_the_wire.md
PRODUCER_ROUND: Final = Symbol("hubweir:producer-round")
PRODUCER_DIGEST: Final = Symbol("hubweir:producer-digest")
# Ours, with the capability STORED_BATCHES: how many events the receiver wants in all.
EVENT_LIMIT: Final = Symbol("hubweir:event-limit")

# Capabilities that a link offers and desires.
ENABLE_RECEIVER_RUNTIME_METRIC: Final = Symbol("com.microsoft:enable-receiver-runtime-metric")
GEOREPLICATION: Final = Symbol("com.microsoft:georeplication")
IDEMPOTENT_PRODUCER: Final = Symbol("com.microsoft:idempotent-producer")
RESUMING_PRODUCER: Final = Symbol("hubweir:resuming-producer")
STORED_BATCHES: Final = Symbol("hubweir:stored-batches")

# The filter of a source that says where to start reading, and the three descriptors its value comes with.
SELECTOR_FILTER: Final = Symbol("apache.org:selector-filter:string")
SELECTOR_FILTER_CODE: Final = ULong(0x0000_468C_0000_0004)
SELECTOR_FILTER_CODE_DOTNET: Final = ULong(0x0000_0013_7000_000A)
SELECTOR_FILTER_DESCRIPTORS: Final = (SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One name: the AMQP type its value has when a service writes it, and what it means."""

    name: Symbol
    type: AmqpType
    meaning: str


EVENT_ANNOTATIONS: Final = (
    Annotation(SEQUENCE_NUMBER, AmqpType.LONG, "place of the event in its partition: from 0, no gaps"),
    Annotation(OFFSET, AmqpType.STRING, "logical byte position of the event in its partition, in decimal digits"),
    Annotation(ENQUEUED_TIME, AmqpType.TIMESTAMP, "when the partition took the event; never decreases"),
    Annotation(PARTITION_KEY, AmqpType.STRING, "the key whose hash chose the partition"),
    Annotation(PUBLISHER, AmqpType.STRING, "the publisher whose link the event came on"),
)

RUNTIME_METRICS: Final = (
    Annotation(LAST_ENQUEUED_SEQUENCE_NUMBER, AmqpType.LONG, "sequence number of the partition's last event"),
    Annotation(LAST_ENQUEUED_OFFSET, AmqpType.STRING, "offset of the partition's last event"),
    Annotation(LAST_ENQUEUED_TIME_UTC, AmqpType.TIMESTAMP, "enqueued time of the partition's last event"),
    Annotation(RUNTIME_INFO_RETRIEVAL_TIME_UTC, AmqpType.TIMESTAMP, "when these values were taken"),
)

LINK_PROPERTIES: Final = (
    Annotation(EPOCH, AmqpType.LONG, "owner level of an exclusive reader; any integer type is taken"),
    Annotation(RECEIVER_NAME, AmqpType.STRING, "what the reader calls itself in error texts"),
    Annotation(TIMEOUT, AmqpType.UINT, "the client's operation time-out, in milliseconds; of no effect"),
    Annotation(ENTITY_TYPE, AmqpType.INT, "the kind of entity the client expects; of no effect"),
    Annotation(TRACKING_ID, AmqpType.STRING, "an id that finds this link in logs"),
    Annotation(PRODUCER_ID, AmqpType.LONG, "an idempotent producer's id"),
    Annotation(PRODUCER_EPOCH, AmqpType.SHORT, "its epoch: the higher one takes over"),
    Annotation(PRODUCER_SEQUENCE_NUMBER, AmqpType.INT, "number of the transfer's first event, from 1"),
    Annotation(PRODUCER_ROUND, AmqpType.LONG, "ours: which round of its work a sink repeats or begins, from 0"),
    Annotation(PRODUCER_DIGEST, AmqpType.LONG, "ours: the sink's digest of its rows of the round up to here"),
    Annotation(EVENT_LIMIT, AmqpType.LONG, "ours: how many events a reader of stored batches wants in all"),
)
