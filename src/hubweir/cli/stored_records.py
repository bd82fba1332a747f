"""Stored batches and records as rows and as JSON, for `hubweir store records`.

A batch that is shown was verified: both checksums, the log's secret, and that it continues where the one before ended.
Keys of authorization rules, which the catalog's records hold, are never shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from hubweir.amqp.messaging.message import DataBody, ValueBody, decode_message
from hubweir.errors import DecodeError, StoreError
from hubweir.kernels.stored_batch import (
    FLAG_CONTINUES,
    FLAG_NAME_IS_KEY,
    KIND_CONTROL,
    KIND_EVENTS,
    KIND_OPERATIONS,
    OPERATION_HEADER_SIZE,
    RECORD_HEADER_SIZE,
)
from hubweir.messaging_store.control_batch import CONTROL_IDLE_MARK, CONTROL_SKIPPED, control_of
from hubweir.messaging_store.disk.batch_scan import Damage
from hubweir.messaging_store.disk.inspection import StoredBatch
from hubweir.messaging_store.disk.segment_files import Segment
from hubweir.namespace.catalog_operation import decode_operation

Item = StoredBatch | tuple[Segment, Damage]
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]

_KINDS = {KIND_EVENTS: "events", KIND_OPERATIONS: "operations", KIND_CONTROL: "control"}
_CONTROLS = {CONTROL_IDLE_MARK: "idle mark", CONTROL_SKIPPED: "skipped numbers"}
BODY_CHARACTERS = 80


def batch_documents(items: Iterator[Item]) -> Iterator[dict[str, object]]:
    """One document a batch or damaged range."""
    for item in items:
        if isinstance(item, tuple):
            yield _damage(*item)
            continue
        header, producer = item.header, item.producer
        name = item.name.decode("utf-8", "replace") or None
        is_key = bool(header.flags & FLAG_NAME_IS_KEY)
        yield {
            "segment": item.segment.header.name.file_name,
            "position": item.position,
            "bytes": header.length,
            "kind": _kind(item),
            "sequence_number": header.first_index,
            "count": header.count,
            "offset": header.first_offset,
            "record_bytes": header.record_bytes,
            "enqueued_time_ms": header.enqueued_time_ms,
            "partition_key": name if is_key else None,
            "publisher": None if is_key else name,
            "producer": None
            if producer is None
            else {
                "id": producer.producer_id,
                "epoch": producer.epoch,
                "first_number": producer.first_number,
                "round": producer.round,
                "digest": producer.digest,
            },
            "continues": bool(header.flags & FLAG_CONTINUES),
            "writer_epoch": header.writer_epoch,
            "durable_upto": header.durable_upto,
            "payload_crc": f"{header.payload_crc:08x}",
            "crc": "sound",
        }


def batch_rows(items: Iterator[Item]) -> Table:
    """The same as a table."""
    headings = ("segment", "position", "bytes", "kind", "sequence numbers", "offset", "enqueued")
    more = ("records", "name", "producer", "durable upto", "crc")
    rows: list[tuple[str, ...]] = []
    for document in batch_documents(items):
        if document["crc"] == "damaged":
            rows.append((*_damage_row(document), "", "", "", "", "", "", "damaged"))
            continue
        first, count = _integer(document["sequence_number"]), _integer(document["count"])
        numbers = str(first) if count == 1 else f"{first}-{first + count - 1}" if count else f"before {first}"
        key, publisher, producer = (document[name] for name in ("partition_key", "publisher", "producer"))
        by = producer if isinstance(producer, dict) else None
        rows.append(
            (
                str(document["segment"]),
                str(document["position"]),
                str(document["bytes"]),
                str(document["kind"]) + (" …" if document["continues"] else ""),
                numbers,
                str(document["offset"]),
                _time(_integer(document["enqueued_time_ms"])),
                str(count),
                f"key {key}" if key is not None else f"publisher {publisher}" if publisher is not None else "",
                "" if by is None else f"{by['id']} epoch {by['epoch']} from {by['first_number']}",
                str(document["durable_upto"]),
                str(document["crc"]),
            )
        )
    return (*headings, *more), rows


def record_documents(items: Iterator[Item], start: int, count: int) -> Iterator[dict[str, object]]:
    """One document a record from index start on, count of them, and one a damaged range."""
    for item in items:
        if isinstance(item, tuple):
            yield _damage(*item)
            continue
        for record in item.records():
            if record.index < start:
                continue
            if not count:
                return
            count -= 1
            yield {
                "sequence_number": record.index,
                "offset": record.offset,
                "bytes": len(record.data),
                "kind": _kind(item),
                "enqueued_time_ms": item.header.enqueued_time_ms,
                "name": item.name.decode("utf-8", "replace") or None,
                "body": _body(item, record.data),
                "crc": "sound",
            }


def record_rows(items: Iterator[Item], start: int, count: int) -> Table:
    """The same as a table; long bodies are cut."""
    rows: list[tuple[str, ...]] = []
    for document in record_documents(items, start, count):
        if document["crc"] == "damaged":
            segment, position, size, _, numbers = _damage_row(document)
            rows.append((numbers, "", size, "", "", f"damage from byte {position} of {segment}", "damaged"))
            continue
        body = str(document["body"])
        rows.append(
            (
                str(document["sequence_number"]),
                str(document["offset"]),
                str(document["bytes"]),
                _time(_integer(document["enqueued_time_ms"])),
                str(document["name"] or ""),
                body if len(body) <= BODY_CHARACTERS else f"{body[: BODY_CHARACTERS - 1]}…",
                str(document["crc"]),
            )
        )
    return ("sequence number", "offset", "bytes", "enqueued", "name", "body", "crc"), rows


def _kind(item: StoredBatch) -> str:
    kind = _KINDS.get(item.header.kind, str(item.header.kind))
    if item.header.kind != KIND_CONTROL:
        return kind
    control, _ = control_of(item.data, item.header)
    return _CONTROLS.get(control, f"control {control}")


def _body(item: StoredBatch, data: memoryview) -> str:
    if item.header.kind == KIND_OPERATIONS:
        try:
            return type(decode_operation(data[OPERATION_HEADER_SIZE:])).__name__
        except StoreError:
            return f"{len(data) - OPERATION_HEADER_SIZE} bytes"
    try:
        body = decode_message(bytes(data[RECORD_HEADER_SIZE:])).body
    except DecodeError as error:
        return f"no legal message: {error}"
    if isinstance(body, DataBody):
        return b"".join(body.parts).decode("utf-8", "replace")
    return "" if body is None else repr(body.value if isinstance(body, ValueBody) else body.sequences)


def _damage(segment: Segment, damage: Damage) -> dict[str, object]:
    return {
        "segment": segment.header.name.file_name,
        "position": damage.start.position,
        "sequence_number": damage.start.index,
        "resumes_at_position": None if damage.resume is None else damage.resume.position,
        "resumes_at_sequence_number": segment.end_index if damage.resume is None else damage.resume.index,
        "crc": "damaged",
    }


def _damage_row(document: dict[str, object]) -> tuple[str, str, str, str, str]:
    """Segment, position, bytes, kind and sequence numbers of a damaged range."""
    first, resume = document["sequence_number"], document["resumes_at_sequence_number"]
    until, at = document["resumes_at_position"], _integer(document["position"])
    size = str(_integer(until) - at) if until is not None else "to the end"
    numbers = f"{first}-{_integer(resume) - 1}" if resume is not None else f"from {first}"
    return str(document["segment"]), str(at), size, "damage", numbers


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0


def _time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds")
