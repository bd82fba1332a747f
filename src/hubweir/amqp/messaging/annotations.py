"""The names that Azure's services and clients give meaning to.

Sources: "Azure Event Hubs AMQP protocol" pages and the client libraries' constants. All are symbols on the wire.
"""

from __future__ import annotations

from typing import Final

from hubweir.amqp.types.values import Symbol, ULong

# Message annotations of a delivered event; a message of a queue has some of them, too.
SEQUENCE_NUMBER: Final = Symbol("x-opt-sequence-number")
OFFSET: Final = Symbol("x-opt-offset")
ENQUEUED_TIME: Final = Symbol("x-opt-enqueued-time")
PARTITION_KEY: Final = Symbol("x-opt-partition-key")
PUBLISHER: Final = Symbol("x-opt-publisher")

# Of a message of a queue, by its sender, and where it was dead-lettered before it came here.
VIA_PARTITION_KEY: Final = Symbol("x-opt-via-partition-key")
SCHEDULED_ENQUEUE_TIME: Final = Symbol("x-opt-scheduled-enqueue-time")
DEADLETTER_SOURCE: Final = Symbol("x-opt-deadletter-source")

# Delivery annotations of a link that asked for ENABLE_RECEIVER_RUNTIME_METRIC.
LAST_ENQUEUED_SEQUENCE_NUMBER: Final = Symbol("last_enqueued_sequence_number")
LAST_ENQUEUED_OFFSET: Final = Symbol("last_enqueued_offset")
LAST_ENQUEUED_TIME_UTC: Final = Symbol("last_enqueued_time_utc")
RUNTIME_INFO_RETRIEVAL_TIME_UTC: Final = Symbol("runtime_info_retrieval_time_utc")

# Properties of an attach; the producer's three also stand in the message annotations of its transfers.
EPOCH: Final = Symbol("com.microsoft:epoch")
RECEIVER_NAME: Final = Symbol("com.microsoft:receiver-name")
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

# Of a connection's open: the library that the peer is.
PRODUCT: Final = Symbol("product")

# Capabilities that a link offers and desires.
ENABLE_RECEIVER_RUNTIME_METRIC: Final = Symbol("com.microsoft:enable-receiver-runtime-metric")
IDEMPOTENT_PRODUCER: Final = Symbol("com.microsoft:idempotent-producer")
RESUMING_PRODUCER: Final = Symbol("hubweir:resuming-producer")
STORED_BATCHES: Final = Symbol("hubweir:stored-batches")

# The filter of a source that says where to start reading, and the three descriptors its value comes with.
SELECTOR_FILTER: Final = Symbol("apache.org:selector-filter:string")
SELECTOR_FILTER_CODE: Final = ULong(0x0000_468C_0000_0004)
SELECTOR_FILTER_CODE_DOTNET: Final = ULong(0x0000_0013_7000_000A)
SELECTOR_FILTER_DESCRIPTORS: Final = (SELECTOR_FILTER, SELECTOR_FILTER_CODE, SELECTOR_FILTER_CODE_DOTNET)
