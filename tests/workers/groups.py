"""What stays together when tests run in several workers, and which of it begins first.

A group runs in one worker, in order. It is a file, because servers and processes are shared within files; and the whole
of tests/spark, because it has one Spark session. What takes long begins first, so that no worker is left alone with it
at the end.
"""

from __future__ import annotations

FOLDERS = ("tests/spark",)

# Seconds on a quiet machine of two cores, roughly: only their order counts. A group without a line takes few.
SECONDS: dict[str, int] = {}


def group_of(nodeid: str) -> str:
    """The group of a test: its folder, if that stays together, or its file."""
    path = nodeid.split("::", 1)[0]
    return next((folder for folder in FOLDERS if path.startswith(f"{folder}/")), path)


def seconds_of(group: str) -> int:
    """How long a group takes; 0 when nobody has written it down."""
    return SECONDS.get(group, 0)
