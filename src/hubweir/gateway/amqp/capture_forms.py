"""Capture in the maps of $management: what a hub's settings say, and how far a partition is.

Settings, key `capture` of a hub, all optional in a request: enabled (boolean), interval_s (int), size_limit_bytes
(long), destination (string), container, storage_account, archive_name_format (strings), skip_empty_archives (boolean),
encoding (string, taken and not given).
"""

from __future__ import annotations

from dataclasses import replace

from hubweir.amqp.types.values import Int, Long
from hubweir.broker.commands.capture import CaptureState
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.capture_description import (
    CaptureDescription,
    check_encoding,
    parse_destination,
)

_KINDS: dict[str, type] = {
    "enabled": bool, "interval_s": int, "size_limit_bytes": int, "destination": str, "container": str,
    "storage_account": str, "archive_name_format": str, "skip_empty_archives": bool, "encoding": str,
}  # fmt: skip
_KIND_WORDS = {bool: "a boolean", int: "a number", str: "a string"}


def capture_map(capture: CaptureDescription | None) -> dict[str, object] | None:
    """The settings; None when capture was never set."""
    if capture is None:
        return None
    return {
        "enabled": capture.enabled,
        "interval_s": Int(capture.interval_s),
        "size_limit_bytes": Long(capture.size_limit_bytes),
        "destination": capture.destination.value,
        "container": capture.container,
        "storage_account": capture.storage_account,
        "archive_name_format": capture.archive_name_format,
        "skip_empty_archives": capture.skip_empty_archives,
    }


def wanted_capture(known: CaptureDescription | None, value: object) -> CaptureDescription:
    """The settings with a request's put in. Raises ServiceError ARGUMENT_ERROR; ranges are the namespace's to check."""
    if not isinstance(value, dict):
        raise ServiceError(ARGUMENT_ERROR, "The setting 'capture' must be a map.")
    changes: dict[str, object] = {}
    for key, entry in value.items():
        kind = _KINDS.get(key) if isinstance(key, str) else None
        if kind is None:
            raise ServiceError(ARGUMENT_ERROR, f"Capture has no setting {str(key)[:64]!r}.")
        if not isinstance(entry, kind) or (kind is int and isinstance(entry, bool)):
            raise ServiceError(ARGUMENT_ERROR, f"The setting {key!r} of capture must be {_KIND_WORDS[kind]}.")
        changes[key] = kind(entry)
    encoding = changes.pop("encoding", None)
    if isinstance(encoding, str):
        check_encoding(encoding)
    destination = changes.get("destination")
    if isinstance(destination, str):
        changes["destination"] = parse_destination(destination)
    return replace(known or CaptureDescription(), **changes)  # type: ignore[arg-type]  # the table has the types


def capture_state_map(hub: str, partition_id: str, state: CaptureState) -> dict[str, object]:
    """How far capture of a partition is."""
    return {
        "name": hub,
        "type": "com.microsoft:capture",
        "partition": partition_id,
        "is_running": state.is_running,
        "next_sequence_number": Long(state.next_sequence_number),
        "behind_events": Long(state.behind_events),
        "behind_bytes": Long(state.behind_bytes),
        "files": Long(state.files),
        "uncaptured_events": Long(state.uncaptured_events),
        "last_file": state.last_file,
        "failure": state.failure,
    }
