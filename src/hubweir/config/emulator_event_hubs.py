"""Event hubs in a configuration file: the elements of a namespace's `Entities`.

The official members are Name, PartitionCount and ConsumerGroups; the others are hubweir's, with the names and shapes
that resource templates of the cloud have. (Event Hubs emulator, schema of the configuration file; ARM reference)
"""

from __future__ import annotations

from hubweir.config.emulator_entities import CaptureConfig, CaptureEncoding, CleanupPolicy, HubConfig, Status
from hubweir.config.emulator_limits import FileLimits
from hubweir.config.emulator_members import (
    ENTITY_NAME,
    UniqueNames,
    official_and,
    read_authorization_rules,
    read_user_metadata,
)
from hubweir.config.json_fields import Fields
from hubweir.config.problems import Kind
from hubweir.namespace.capture_description import INTERVAL_LIMIT_S, INTERVAL_MIN_S, SIZE_LIMIT_BYTES, SIZE_MIN_BYTES
from hubweir.namespace.event_hub_description import RETENTION_LIMIT_MS
from hubweir.namespace.iso_duration import DAY_MS, HOUR_MS
from hubweir.namespace.names import DEFAULT_GROUP, check_group_name, check_hub_name
from hubweir.namespace.resource_path import fold

# Of a capture window, in seconds and bytes: whichever is reached first ends it. (Event Hubs Capture overview)
CAPTURE_INTERVAL_S = (INTERVAL_MIN_S, INTERVAL_LIMIT_S)
CAPTURE_SIZE_BYTES = (SIZE_MIN_BYTES, SIZE_LIMIT_BYTES)


def read_hubs(namespace: Fields, limits: FileLimits) -> tuple[HubConfig, ...]:
    """The member Entities of a namespace."""
    names = UniqueNames("event hub")
    hubs = []
    for fields in namespace.objects("Entities", required=True, least=limits.hubs_min, most=limits.hubs_limit):
        hub = _read_hub(fields, limits)
        fields.finish()
        if hub is not None and names.take_name(hub.name, fields):
            hubs.append(hub)
    return tuple(hubs)


def _read_hub(fields: Fields, limits: FileLimits) -> HubConfig | None:
    """The hub; None when its name or partition count is not usable, which was noted then."""
    check = official_and(check_hub_name, official=limits.official)
    name = fields.text("Name", required=True, check=check, allowed=f"1 to 256 characters: {ENTITY_NAME}")
    partition_count = fields.integer("PartitionCount", required=True, least=1, most=limits.partitions_limit)
    groups = _read_groups(fields, limits)
    retention_ms = _read_retention(fields)
    cleanup_policy = fields.choice("CleanupPolicy", CleanupPolicy)
    status = fields.choice("Status", Status)
    user_metadata = read_user_metadata(fields)
    rules = read_authorization_rules(fields)
    capture = _read_capture(fields)
    if name is None or partition_count is None:
        return None
    return HubConfig(
        name=name,
        partition_count=partition_count,
        consumer_groups=groups,
        retention_ms=retention_ms,
        cleanup_policy=cleanup_policy,
        status=status,
        user_metadata=user_metadata,
        rules=rules,
        capture=capture,
        location=fields.place("Name"),
        partition_count_location=fields.place("PartitionCount"),
    )


def _read_groups(fields: Fields, limits: FileLimits) -> tuple[str, ...]:
    """The consumer groups besides $Default, which may be named and need not be."""
    names = UniqueNames("consumer group")
    groups = []
    most = limits.consumer_groups_limit
    allowed = "1 to 50 letters, digits and - . _ ~; a letter or digit at both ends; or $Default"
    declared = []
    for group in fields.objects("ConsumerGroups"):
        name = group.text("Name", required=True, check=check_group_name, allowed=allowed)
        group.finish()
        if name is None or fold(name) == fold(DEFAULT_GROUP):
            continue
        declared.append(group)
        if names.take_name(name, group):
            groups.append(name)
    if len(declared) > most:
        first = declared[most]
        what = "the event hub has too many consumer groups"
        found = f"{len(declared)} besides {DEFAULT_GROUP}"
        first.file.error(Kind.WRONG_COUNT, first.at, first.steps, what, found=found, allowed=f"at most {most}")
    return tuple(groups)


def _read_retention(fields: Fields) -> int | None:
    """Milliseconds; days and hours may both be given when they say the same."""
    days = fields.integer("MessageRetentionInDays", least=1, most=RETENTION_LIMIT_MS // DAY_MS)
    hours = fields.integer("RetentionTimeInHours", least=1, most=RETENTION_LIMIT_MS // HOUR_MS)
    if days is not None and hours is not None and days * DAY_MS != hours * HOUR_MS:
        what = f"RetentionTimeInHours and MessageRetentionInDays ({days}) disagree"
        fields.wrong("RetentionTimeInHours", what, allowed=f"one of the two, or {days * 24} hours")
        return None
    if hours is not None:
        return hours * HOUR_MS
    return None if days is None else days * DAY_MS


def _read_capture(hub: Fields) -> CaptureConfig | None:
    fields = hub.object("CaptureDescription")
    if fields is None:
        return None
    destination = fields.object("Destination")
    # Templates write the destination's own members below another object.
    inner = None if destination is None else destination.object("Properties")
    place = inner or destination
    capture = CaptureConfig(
        enabled=fields.boolean("Enabled") or False,
        encoding=fields.choice("Encoding", CaptureEncoding),
        interval_s=fields.integer("IntervalInSeconds", least=CAPTURE_INTERVAL_S[0], most=CAPTURE_INTERVAL_S[1]),
        size_limit_bytes=fields.integer("SizeLimitInBytes", least=CAPTURE_SIZE_BYTES[0], most=CAPTURE_SIZE_BYTES[1]),
        skip_empty_archives=fields.boolean("SkipEmptyArchives"),
        destination_name=None if destination is None else destination.text("Name"),
        storage_account_resource_id=None if place is None else place.text("StorageAccountResourceId"),
        blob_container=None if place is None else place.text("BlobContainer"),
        archive_name_format=None if place is None else place.text("ArchiveNameFormat"),
        location=fields.location,
    )
    for part in (inner, destination, fields):
        if part is not None:
            part.finish()
    return capture
