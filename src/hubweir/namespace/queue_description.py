"""Description of a queue: what its operator may set, with ranges and defaults, and what a new one must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings, check_delivery
from hubweir.namespace.entity import AnyEntity, Entity, EntityKind
from hubweir.namespace.messaging_description import MessagingDescription, check_new_entity
from hubweir.namespace.storage_settings import StorageSettings, checked_storage


class QueueDescription(MessagingDescription, frozen=True, tag=EntityKind.QUEUE.value):
    """One queue. It lies in one log, its fragment."""

    kind: ClassVar[EntityKind] = EntityKind.QUEUE

    name: str
    delivery: DeliverySettings = DeliverySettings()
    storage: StorageSettings = StorageSettings()

    @property
    def log_count(self) -> int:
        return 1

    def legal(self, context: ChangeContext) -> Self:
        """See MessagingDescription."""
        check_delivery(self.title, self.delivery, context)
        storage = checked_storage(self.title, self.storage, context.profile.messaging)
        return replace(super().legal(context), storage=storage)

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """See EntityDescription."""
        check_new_entity(self, self.storage, existing, context)
        return self.legal(context)


QueueEntity = Entity[QueueDescription]
