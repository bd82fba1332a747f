"""Names of captured files: a hub's pattern filled in. (Event Hubs Capture overview)

Numbers have two digits, the year four; the time is UTC, to the second. A pattern holds each token once
(namespace/capture_description.py checks it), so two files of different seconds, partitions or hubs differ in name.
"""

from __future__ import annotations

from datetime import UTC, datetime

SUFFIX = ".avro"
# 9999-12-31: the last second that a year of four digits can name.
_LAST_SECOND = 253_402_300_799


def name_second(now_ms: int, last_second: int) -> int:
    """The second that names the next file: now, but behind the one before, or that one would be overwritten."""
    return min(max(now_ms // 1000, last_second + 1), _LAST_SECOND)


def archive_name(pattern: str, *, namespace: str, hub: str, partition_id: str, second: int) -> str:
    """The path of a file below its container. second: since 1970."""
    at = datetime.fromtimestamp(second, UTC)
    words = {
        "Namespace": namespace, "EventHub": hub, "PartitionId": partition_id, "Year": f"{at.year:04}",
        "Month": f"{at.month:02}", "Day": f"{at.day:02}", "Hour": f"{at.hour:02}", "Minute": f"{at.minute:02}",
        "Second": f"{at.second:02}",
    }  # fmt: skip
    # In one pass: a hub's name may not be taken for a token.
    parts = pattern.split("{")
    filled = [words[token] + literal for token, _, literal in (part.partition("}") for part in parts[1:])]
    return parts[0] + "".join(filled) + SUFFIX
