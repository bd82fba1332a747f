"""Settings of a queue's or a subscription's deliveries: lock, delivery count, sessions, dead letters, forwarding."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.change_context import ChangeContext
from hubweir.namespace.entity import check_span, out_of_range
from hubweir.namespace.forward_address import check_forward
from hubweir.namespace.iso_duration import MINUTE_MS, SECOND_MS, WrittenDuration

LOCK_MIN_MS, LOCK_LIMIT_MS = 5 * SECOND_MS, 5 * MINUTE_MS
DELIVERY_COUNT_LIMIT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySettings:
    """Kept in the catalog. requires_session never changes.

    forward_to, forward_dead_letters_to: as they were sent; "": nowhere.
    """

    lock_duration: WrittenDuration = WrittenDuration(MINUTE_MS, "PT1M")
    max_delivery_count: int = 10
    requires_session: bool = False
    dead_letters_on_expiration: bool = False
    forward_to: str = ""
    forward_dead_letters_to: str = ""


def check_delivery(title: str, delivery: DeliverySettings, context: ChangeContext) -> None:
    """Raise ServiceError for settings that are out of range, or forward to what is not there.

    title: of the entity, which may forward to itself once it exists.
    """
    check_span(title, "LockDuration", delivery.lock_duration, least_ms=LOCK_MIN_MS, most_ms=LOCK_LIMIT_MS)
    if not 1 <= delivery.max_delivery_count <= DELIVERY_COUNT_LIMIT:
        what = f"MaxDeliveryCount is {delivery.max_delivery_count}; 1 to {DELIVERY_COUNT_LIMIT} are allowed"
        raise out_of_range(title, what)
    tier = context.profile.messaging
    tier.check_feature(title, "sessions", delivery.requires_session)
    tier.check_feature(title, "forwarding", bool(delivery.forward_to or delivery.forward_dead_letters_to))
    check_forward(title, "ForwardTo", delivery.forward_to, context)
    check_forward(title, "ForwardDeadLetteredMessagesTo", delivery.forward_dead_letters_to, context)
