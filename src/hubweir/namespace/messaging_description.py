"""The common part of descriptions of queues, topics and subscriptions, beside what every entity has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import (
    AnyEntity,
    EntityDescription,
    EntityKind,
    check_name_is_free,
    check_span,
    check_user_metadata,
)
from hubweir.namespace.iso_duration import MINUTE_MS, SECOND_MS, UNLIMITED, UNLIMITED_MS, WrittenDuration
from hubweir.namespace.names import check_entity_name
from hubweir.namespace.rule_description import check_rules
from hubweir.namespace.storage_settings import StorageSettings

IDLE_MIN_MS = 5 * MINUTE_MS


class MessagingDescription(EntityDescription, frozen=True, kw_only=True):
    """A queue, a topic or a subscription.

    auto_delete_on_idle: the entity goes when nobody has used it that long.
    """

    default_time_to_live: WrittenDuration = UNLIMITED
    auto_delete_on_idle: WrittenDuration = UNLIMITED
    enable_batched_operations: bool = True

    def legal(self, context: ChangeContext) -> Self:
        """The description as it is kept, when its settings are in range and allowed; names are not looked at.

        Raises ServiceError. Each kind adds its own settings.
        """
        title = self.title
        check_span(
            title, "DefaultMessageTimeToLive", self.default_time_to_live, least_ms=SECOND_MS, most_ms=UNLIMITED_MS
        )
        check_span(title, "AutoDeleteOnIdle", self.auto_delete_on_idle, least_ms=IDLE_MIN_MS, most_ms=UNLIMITED_MS)
        check_user_metadata(title, self.user_metadata)
        check_rules(title, self.rules)
        return self


def check_new_entity(
    new: MessagingDescription, storage: StorageSettings, existing: Sequence[AnyEntity], context: ChangeContext
) -> None:
    """Raise ServiceError when a queue or a topic may not be made: its name, or the quotas of the namespace."""
    check_entity_name(new.kind.noun, new.name)
    check_name_is_free(new, existing)
    tier, others = context.profile.messaging, [each for each in existing if each.kind in _STORING]
    tier.check_entity_count(len(others) + 1)
    if storage.is_partitioned:
        partitioned = [each for each in others if storage_of(each.description).is_partitioned]
        tier.check_partitioned_count(len(partitioned) + 1)


def storage_of(description: EntityDescription) -> StorageSettings:
    """The storage settings of a queue or a topic; the defaults of every other kind."""
    found = getattr(description, "storage", None)
    return found if isinstance(found, StorageSettings) else StorageSettings()


def delivery_of(description: EntityDescription) -> DeliverySettings:
    """The delivery settings of a queue or a subscription; the defaults of every other kind."""
    found = getattr(description, "delivery", None)
    return found if isinstance(found, DeliverySettings) else DeliverySettings()


_STORING = (EntityKind.QUEUE, EntityKind.TOPIC)
