"""The capture page of an event hub: its switch, window and destination, and how far each partition is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from hubweir.broker.commands.capture import CaptureState
from hubweir.errors import ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.event_hub_changes import set_settings
from hubweir.namespace.event_hub_description import EventHubDescription, EventHubEntity
from hubweir.portal.entered_values import entered_values
from hubweir.portal.form import Form
from hubweir.portal.form_fields import FieldEntry, SettingField, choice, flag, flag_value, number
from hubweir.portal.paging import page_of
from hubweir.portal.visit import Visit

_MIB = 1_024 * 1_024
PARTITION_ROWS = 32
_DESTINATION = SettingField(
    "destination",
    "Destination",
    FieldEntry.CHOICE,
    "A storage account is the one that the service is set up with.",
    (
        (CaptureDestination.LOCAL_FOLDER.value, "Folder of the service"),
        (CaptureDestination.AZURE_BLOCK_BLOB.value, "Azure Storage"),
        (CaptureDestination.AZURE_DATA_LAKE.value, "Azure Data Lake Storage"),
    ),
)
FIELDS = (
    SettingField("enabled", "Capture", FieldEntry.FLAG, "Write the events of this hub as Avro files."),
    SettingField("minutes", "Time window (minutes)", FieldEntry.NUMBER, "1 to 15: a file is finished after so long."),
    SettingField("megabytes", "Size window (MB)", FieldEntry.NUMBER, "10 to 500: or when it is so large."),
    SettingField("skip_empty", "Do not emit empty files", FieldEntry.FLAG, "For windows in which no event came."),
    _DESTINATION,
    SettingField("container", "Container", FieldEntry.TEXT, "Of a folder a folder below it, which may be empty."),
    SettingField("storage_account", "Storage account", FieldEntry.TEXT, "Its name; empty for the service's own."),
    SettingField("format", "Capture file name format", FieldEntry.TEXT, "Each of the nine tokens once."),
)


@dataclass(frozen=True, slots=True)
class CaptureRow:
    """How far one partition is, or why that is not known."""

    partition_id: str
    state: CaptureState | None
    problem: str = ""


async def capture(visit: Visit) -> Response:
    return await _show(visit, None)


async def change_capture(visit: Visit) -> Response:
    """Set what was entered; what stays the same is set again, so that a capture that waits tries at once."""
    hub = visit.entity(EventHubDescription)
    entered = entered_values(visit.form, _values(_known(hub)))
    try:
        wanted = msgspec.structs.replace(hub.description, capture=_read(entered, _known(hub)))
        change = partial(set_settings, wanted=wanted, seen=hub.description)
        await visit.ask(partial(visit.gateway.keeper.change, hub.name, EventHubDescription, change))
    except ServiceError as refusal:
        return await _show(visit, refusal)
    return visit.go("capture", hub.name, notice="changed")


def _known(hub: EventHubEntity) -> CaptureDescription:
    return hub.description.capture or CaptureDescription()


def _values(known: CaptureDescription) -> dict[str, str]:
    return {
        "enabled": flag_value(known.enabled),
        "minutes": f"{known.interval_s / 60:g}",
        "megabytes": f"{known.size_limit_bytes / _MIB:g}",
        "skip_empty": flag_value(known.skip_empty_archives),
        "destination": known.destination.value,
        "container": known.container,
        "storage_account": known.storage_account,
        "format": known.archive_name_format,
    }


def _read(form: Form, known: CaptureDescription) -> CaptureDescription:
    before = _values(known)
    changed = replace(
        known,
        enabled=flag(form, "enabled"),
        destination=CaptureDestination(choice(form, _DESTINATION)),
        container=form.get("container", "").strip(),
        storage_account=form.get("storage_account", "").strip(),
        archive_name_format=form.get("format", "").strip(),
        skip_empty_archives=flag(form, "skip_empty"),
    )
    # What is no whole number of minutes or megabytes stays as a client set it, unless it is changed.
    if form.get("minutes", "") != before["minutes"]:
        changed = replace(changed, interval_s=60 * number(form, "minutes", "The time window"))
    if form.get("megabytes", "") != before["megabytes"]:
        changed = replace(changed, size_limit_bytes=_MIB * number(form, "megabytes", "The size window"))
    return changed


async def _show(visit: Visit, problem: ServiceError | None) -> Response:
    hub = visit.entity(EventHubDescription)
    seen = _values(_known(hub))
    page = page_of(visit.query, hub.description.partition_ids, PARTITION_ROWS)
    rows = await asyncio.gather(*(_row(visit, hub.name, partition_id) for partition_id in page.items))
    return visit.show_form(
        "capture.html",
        problem,
        entity=hub,
        fields=FIELDS,
        values=seen if problem is None else entered_values(visit.form, seen),
        seen=seen,
        page=page,
        rows=rows,
        is_on=_known(hub).enabled,
    )


async def _row(visit: Visit, hub: str, partition_id: str) -> CaptureRow:
    try:
        state = await visit.ask(partial(visit.gateway.management.capture_state, hub, partition_id))
    except ServiceError as refusal:
        return CaptureRow(partition_id, None, refusal.text)
    return CaptureRow(partition_id, state)
