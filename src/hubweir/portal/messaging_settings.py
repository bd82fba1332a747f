"""The settings of queues, topics and subscriptions as forms, in the words of the service's portal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_fields
from typing import TypeVar

from msgspec.structs import replace

from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import parse_availability
from hubweir.namespace.iso_duration import WrittenDuration
from hubweir.namespace.messaging_description import MessagingDescription, delivery_of, storage_of
from hubweir.namespace.messaging_tier import MessagingTier
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import PREMIUM_SIZES, STANDARD_SIZES, StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.event_hub_settings import METADATA, STATUS
from hubweir.portal.form import Form
from hubweir.portal.form_fields import FieldEntry, SettingField, choice, flag, flag_value, number
from hubweir.portal.quantities import read_span, span_words

M = TypeVar("M", bound=MessagingDescription)

_SIZE = "max_size"
_DELIVERIES = SettingField(
    "max_delivery_count",
    "Max delivery count",
    FieldEntry.NUMBER,
    "After so many deliveries a message is a dead letter.",
)
_TIME_TO_LIVE = SettingField(
    "time_to_live",
    "Message time to live",
    FieldEntry.SPAN,
    "How long a message waits for a receiver: “14 days”, “never”.",
)
_LOCK = SettingField(
    "lock_duration",
    "Lock duration",
    FieldEntry.SPAN,
    "How long a receiver may work on a message: up to 5 minutes.",
)
_IDLE = SettingField(
    "auto_delete_on_idle",
    "Auto-delete on idle",
    FieldEntry.SPAN,
    "Deleted when nobody has used it for so long; or “never”.",
)
_DUPLICATES = SettingField(
    "duplicate_detection", "Duplicate detection", FieldEntry.FLAG, "A second message with the same id is dropped.",
    is_fixed=True,
)  # fmt: skip
_WINDOW = SettingField(
    "duplicate_window",
    "Duplicate detection window",
    FieldEntry.SPAN,
    "For how long ids are remembered.",
)
_PARTITIONING = SettingField(
    "partitioning",
    "Partitioning",
    FieldEntry.FLAG,
    "Spread over several fragments and messaging stores.",
    is_fixed=True,
)
_SESSIONS = SettingField(
    "sessions",
    "Sessions",
    FieldEntry.FLAG,
    "Messages with one session id go to one receiver, in order.",
    is_fixed=True,
)
_EXPIRED = SettingField(
    "dead_letters_on_expiration",
    "Dead lettering on message expiration",
    FieldEntry.FLAG,
    "Expired messages become dead letters; else they are dropped.",
)
_FILTER_ERRORS = SettingField(
    "dead_letters_on_filter_errors",
    "Dead lettering on filter evaluation errors",
    FieldEntry.FLAG,
    "A message whose filter fails becomes a dead letter.",
)
_FORWARD = SettingField(
    "forward_to",
    "Forward messages to",
    FieldEntry.TEXT,
    "A queue or a topic; empty keeps them here.",
)
_FORWARD_DEAD = SettingField(
    "forward_dead_letters_to",
    "Forward dead letters to",
    FieldEntry.TEXT,
    "A queue or a topic; empty keeps them here.",
)


def messaging_fields(description: MessagingDescription, tier: MessagingTier) -> Sequence[SettingField]:
    """Of an entity of this kind, in the order in which they are shown."""
    fields: list[SettingField] = []
    has_storage = not isinstance(description, SubscriptionDescription)
    has_delivery = not isinstance(description, TopicDescription)
    if has_storage:
        fields.append(_size_field(description, tier))
    if has_delivery:
        fields.append(_DELIVERIES)
    fields += [_TIME_TO_LIVE, _LOCK, _IDLE] if has_delivery else [_TIME_TO_LIVE, _IDLE]
    if has_storage:
        fields += [_DUPLICATES, _WINDOW, _PARTITIONING]
    if has_delivery:
        fields += [_SESSIONS, _EXPIRED]
    if isinstance(description, SubscriptionDescription):
        fields.append(_FILTER_ERRORS)
    if has_delivery:
        fields += [_FORWARD, _FORWARD_DEAD]
    return (*fields, STATUS, METADATA)


def messaging_values(description: MessagingDescription) -> dict[str, str]:
    """What a form holds of an entity."""
    storage, delivery = storage_of(description), delivery_of(description)
    values = {
        _SIZE: str(storage.max_size_megabytes),
        _DELIVERIES.name: str(delivery.max_delivery_count),
        _TIME_TO_LIVE.name: span_words(description.default_time_to_live.ms),
        _LOCK.name: span_words(delivery.lock_duration.ms),
        _IDLE.name: span_words(description.auto_delete_on_idle.ms),
        _DUPLICATES.name: flag_value(storage.requires_duplicate_detection),
        _WINDOW.name: span_words(storage.duplicate_window.ms),
        _PARTITIONING.name: flag_value(storage.is_partitioned),
        _SESSIONS.name: flag_value(delivery.requires_session),
        _EXPIRED.name: flag_value(delivery.dead_letters_on_expiration),
        _FORWARD.name: delivery.forward_to,
        _FORWARD_DEAD.name: delivery.forward_dead_letters_to,
        STATUS.name: description.availability.text,
        METADATA.name: description.user_metadata,
    }
    if isinstance(description, SubscriptionDescription):
        values[_FILTER_ERRORS.name] = flag_value(description.dead_letters_on_filter_errors)
    return values


def read_messaging(form: Form, known: M, tier: MessagingTier, *, is_new: bool) -> M:
    """The entity with the settings that were entered. Raises ServiceError. is_new: those of a new one, too."""
    changed = replace(
        known,
        default_time_to_live=_span(form, _TIME_TO_LIVE, known.default_time_to_live),
        auto_delete_on_idle=_span(form, _IDLE, known.auto_delete_on_idle),
        availability=parse_availability(choice(form, STATUS)),
        user_metadata=form.get(METADATA.name, "").strip(),
    )
    if isinstance(changed, QueueDescription | TopicDescription):
        changed = replace(changed, storage=_storage(form, changed, tier, is_new=is_new))
    if isinstance(changed, SubscriptionDescription):
        changed = replace(changed, dead_letters_on_filter_errors=flag(form, _FILTER_ERRORS.name))
    if isinstance(changed, QueueDescription | SubscriptionDescription):
        changed = replace(changed, delivery=_delivery(form, changed.delivery, is_new=is_new))
    return changed


def _storage(form: Form, known: MessagingDescription, tier: MessagingTier, *, is_new: bool) -> StorageSettings:
    storage = storage_of(known)
    if is_new:
        storage = replace_fields(
            storage,
            requires_duplicate_detection=flag(form, _DUPLICATES.name),
            is_partitioned=flag(form, _PARTITIONING.name),
        )
    return replace_fields(
        storage,
        max_size_megabytes=int(choice(form, _size_field(known, tier))),
        duplicate_window=_span(form, _WINDOW, storage.duplicate_window),
    )


def _delivery(form: Form, known: DeliverySettings, *, is_new: bool) -> DeliverySettings:
    return replace_fields(
        known,
        lock_duration=_span(form, _LOCK, known.lock_duration),
        max_delivery_count=number(form, _DELIVERIES.name, _DELIVERIES.label),
        requires_session=flag(form, _SESSIONS.name) if is_new else known.requires_session,
        dead_letters_on_expiration=flag(form, _EXPIRED.name),
        forward_to=form.get(_FORWARD.name, "").strip(),
        forward_dead_letters_to=form.get(_FORWARD_DEAD.name, "").strip(),
    )


def _span(form: Form, field: SettingField, known: WrittenDuration) -> WrittenDuration:
    return read_span(form.get(field.name, ""), field.label, known)


def _size_field(description: MessagingDescription, tier: MessagingTier) -> SettingField:
    noun = description.kind.noun
    sizes = PREMIUM_SIZES if tier.has_large_sizes else STANDARD_SIZES
    told = f"When it is full, sends are refused. A partitioned {noun} has room for this in each fragment."
    return SettingField(
        _SIZE, f"Max {noun} size", FieldEntry.CHOICE, told, tuple((str(size), f"{size // 1_024} GB") for size in sizes)
    )
