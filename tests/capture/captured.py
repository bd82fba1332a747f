"""Captured files of a folder, read by a standard Avro reader."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro


@dataclass(frozen=True)
class CapturedFile:
    """One file: its name below the folder, its schema as fastavro gives it, its records."""

    name: str
    schema: Any
    codec: str
    records: list[dict[str, Any]]


def read_file(folder: Path, path: Path) -> CapturedFile:
    with path.open("rb") as file:
        reader = fastavro.reader(file)
        records: list[Any] = list(reader)
        return CapturedFile(path.relative_to(folder).as_posix(), reader.writer_schema, reader.codec, records)


def captured_files(folder: Path) -> list[CapturedFile]:
    """All finished files, by name, so in the order of their times."""
    return [read_file(folder, path) for path in sorted(folder.rglob("*.avro"))]


def wrong_order(files: list[CapturedFile], first: int = 0) -> str:
    """What is wrong with the sequence numbers of one partition: from first on, each once, none left out; else empty."""
    numbers = [record["SequenceNumber"] for file in files for record in file.records]
    for place, number in enumerate(numbers):
        if number != first + place:
            return f"event {number} stands where {first + place} belongs"
    return ""
