"""Description of a topic: what its operator may set, with ranges and defaults, and what a new one must satisfy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from msgspec.structs import replace

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import AnyEntity, Entity, EntityKind
from hubweir.namespace.messaging_description import MessagingDescription, check_new_entity
from hubweir.namespace.storage_settings import StorageSettings, checked_storage, new_storage
from hubweir.namespace.tiers import Profile


class TopicDescription(MessagingDescription, frozen=True, tag=EntityKind.TOPIC.value):
    """One topic. It lies in one log, its fragment, or in several; its subscriptions have a fragment in each."""

    kind: ClassVar[EntityKind] = EntityKind.TOPIC

    name: str
    storage: StorageSettings = StorageSettings()

    def log_count(self, profile: Profile) -> int:
        return self.storage.fragment_count(profile.messaging)

    def legal(self, context: ChangeContext) -> Self:
        """See MessagingDescription."""
        storage = checked_storage(self.title, self.storage, context.profile.messaging)
        return replace(super().legal(context), storage=storage)

    def checked(self, existing: Sequence[AnyEntity], context: ChangeContext) -> Self:
        """See EntityDescription."""
        context.profile.messaging.check_feature(self.title, "topics", True)
        new = replace(self, storage=new_storage(self.storage, context.profile.messaging))
        check_new_entity(new, new.storage, existing, context)
        return new.legal(context)


TopicEntity = Entity[TopicDescription]
