"""The settings of an event hub as a form, in the words of the service's portal."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hubweir.messaging_store.log import Durability
from hubweir.namespace.entity import Availability, parse_availability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.iso_duration import written_duration_of
from hubweir.portal.form import Form
from hubweir.portal.form_fields import FieldEntry, SettingField, choice, number
from hubweir.portal.quantities import read_span, span_words

STATUS = SettingField(
    "status",
    "Status",
    FieldEntry.CHOICE,
    "Disabled takes and gives nothing; the others switch off one direction.",
    tuple((each.text, each.text) for each in Availability),
)
METADATA = SettingField(
    "user_metadata",
    "User metadata",
    FieldEntry.LONG_TEXT,
    "A note of yours, up to 1,024 characters.",
)
_PARTITIONS = SettingField(
    "partition_count",
    "Partition count",
    FieldEntry.NUMBER,
    "How many readers of one consumer group can work side by side. It never changes.",
    is_fixed=True,
)
_RETENTION = SettingField(
    "retention",
    "Message retention",
    FieldEntry.SPAN,
    "1 hour to 90 days, such as “7 days”.",
)
_DURABILITY = SettingField(
    "durability",
    "Durability",
    FieldEntry.CHOICE,
    "Durable: accepted means synced to disk. Relaxed is faster; a power cut may take the last 50 ms.",
    tuple((each.name.lower(), each.name.capitalize()) for each in Durability),
)


def event_hub_fields() -> Sequence[SettingField]:
    """In the order in which they are shown."""
    return (_PARTITIONS, _RETENTION, _DURABILITY, STATUS, METADATA)


def event_hub_values(hub: EventHubDescription) -> dict[str, str]:
    """What a form holds of a hub."""
    return {
        _PARTITIONS.name: str(hub.partition_count),
        _RETENTION.name: span_words(hub.retention_ms),
        _DURABILITY.name: hub.durability.name.lower(),
        STATUS.name: hub.availability.text,
        METADATA.name: hub.user_metadata,
    }


def read_event_hub(form: Form, known: EventHubDescription, *, is_new: bool) -> EventHubDescription:
    """The hub with the settings that were entered. Raises ServiceError. is_new: with what only a new one is given."""
    retention = read_span(form.get(_RETENTION.name, ""), _RETENTION.label, written_duration_of(known.retention_ms))
    return replace(
        known,
        partition_count=number(form, _PARTITIONS.name, _PARTITIONS.label) if is_new else known.partition_count,
        retention_ms=retention.ms,
        durability=Durability[choice(form, _DURABILITY).upper()],
        availability=parse_availability(choice(form, STATUS)),
        user_metadata=form.get(METADATA.name, "").strip(),
    )
