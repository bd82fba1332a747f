"""Description of a topic: what its operator may set, with ranges and defaults, and what a new one must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import AnyEntity, Entity, EntityKind
from hubweir.namespace.messaging_description import MessagingDescription, check_new_entity
from hubweir.namespace.storage_settings import StorageSettings, checked_storage


class TopicDescription(MessagingDescription, frozen=True, tag=EntityKind.TOPIC.value):
    """One topic. It lies in one log, its fragment; its subscriptions are views of that."""

    kind: ClassVar[EntityKind] = EntityKind.TOPIC

    name: str
    storage: StorageSettings = StorageSettings()

    @property
    def log_count(self) -> int:
        return 1

    def legal(self, context: ChangeContext) -> Self:
        """See MessagingDescription."""
        storage = checked_storage(self.title, self.storage, context.profile.messaging)
        return replace(super().legal(context), storage=storage)

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """See EntityDescription."""
        context.profile.messaging.check_feature(self.title, "topics", True)
        check_new_entity(self, self.storage, existing, context)
        return self.legal(context)


TopicEntity = Entity[TopicDescription]
