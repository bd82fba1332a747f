"""The fragments of a queue, a topic or a subscription: where they live, and which one a key, number or token means.

Most entities have one fragment, and it is asked for without a look at keys. A partitioned one has several, numbered
from 0 on: a message with a key goes to the fragment of its key, for ever; its sequence number and the token of its lock
say the number of the fragment in their highest 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.broker.commands.fragment import EnqueueMessages
from hubweir.errors import MESSAGE_NOT_FOUND, NOT_IMPLEMENTED, ServiceError
from hubweir.event_hub.partition_key import partition_of_key
from hubweir.gateway.brokers import BrokerClient
from hubweir.queue.fragment_number import NUMBER_BYTES, fragment_of
from hubweir.queue.given_id import id_prefix_of


@dataclass(frozen=True, slots=True)
class FragmentPlace:
    """Where one fragment of a queue or of a topic lives, or of a subscription. entity: its name as created.

    log_id: by which commands name it. stored_in: the log that it lies in, of a subscription its topic's; topic: that
    topic's name. number: which of the entity's fragments it is. store_index: of the messaging store that has the log.
    """

    entity: str
    log_id: str
    broker: BrokerClient
    stored_in: str
    topic: str | None = None
    number: int = 0
    store_index: int = 0

    @property
    def id_prefix(self) -> bytes:
        """What ids begin with that messages get which came without one (kernels/contract.py).

        A message has one id in all subscriptions that it was copied to.
        """
        return id_prefix_of(self.stored_in).encode()

    def goes_with(self, entity: str) -> bool:
        """Whether this is gone when the entity of that name is."""
        return entity in (self.entity, self.topic)

    def store(self, run: bytearray, messages: int, size_bytes: int) -> EnqueueMessages:
        """The command that stores a run here."""
        return EnqueueMessages(self.log_id, run, messages, size_bytes)


@dataclass(frozen=True, slots=True)
class Fragments:
    """All fragments of one entity. places: by number, at least one; they never change while the entity is there."""

    places: tuple[FragmentPlace, ...]

    @property
    def entity(self) -> str:
        """Its name as created."""
        return self.places[0].entity

    @property
    def is_partitioned(self) -> bool:
        """Whether there are several, so that keys matter."""
        return len(self.places) > 1

    @property
    def only(self) -> FragmentPlace:
        """The fragment of an entity that has one. ServiceError NOT_IMPLEMENTED: it has several."""
        if self.is_partitioned:
            text = f"'{self.entity}' is partitioned, and this request works with one fragment: make it without."
            raise ServiceError(NOT_IMPLEMENTED, text)
        return self.places[0]

    def of_key(self, key: bytes) -> FragmentPlace:
        """Where messages of a key (UTF-8 bytes) are, as partitions of an event hub are chosen: the same for ever."""
        return self.places[partition_of_key(key, len(self.places))]

    def of_number(self, sequence_number: int) -> FragmentPlace:
        """Where a message of this sequence number is, if anywhere. ServiceError MESSAGE_NOT_FOUND: nowhere.

        Of an entity with one fragment it is that one, whatever the number: its broker answers.
        """
        place = self._numbered(fragment_of(sequence_number))
        if place is None:
            text = f"'{self.entity}' has no message of sequence number {sequence_number}"
            raise ServiceError(MESSAGE_NOT_FOUND, text)
        return place

    def from_number(self, sequence_number: int) -> tuple[FragmentPlace, ...]:
        """The fragments that may have messages of this sequence number or higher ones, by number."""
        return self.places[fragment_of(sequence_number) :] if self.is_partitioned else self.places

    def of_token(self, token: bytes) -> FragmentPlace | None:
        """Where the lock of a token is, if anywhere; None: no fragment gives such tokens."""
        if not self.is_partitioned:
            return self.places[0]
        return self._numbered(fragment_of(int.from_bytes(token[:NUMBER_BYTES], "big")))

    def _numbered(self, number: int) -> FragmentPlace | None:
        if not self.is_partitioned:
            return self.places[0]
        return self.places[number] if 0 <= number < len(self.places) else None


def fragment_id(subscription_id: str, number: int, count: int) -> str:
    """By which commands name the fragment of a subscription in its topic's log of this number. count: of those logs."""
    return subscription_id if count == 1 else f"{subscription_id}-{number}"
