"""Kernels: the loops that run once an event, as functions over buffers. Floor: codec.

contract.py says what each promises, columns_contract.py those of Capture and of Arrow columns; stored_batch.py is the
one format on disk. Each kernel exists compiled (`_amqp.pyx`, `_record.pyx`, `_keys.pyx`, `_columns.pyx`,
`_capture.pyx`) and in plain Python (pure.py, pure_columns.py). Import them from here: this page picks the compiled ones
where they were built, and the twins otherwise. HUBWEIR_KERNELS=pure in the environment asks for the twins,
HUBWEIR_KERNELS=compiled refuses to run without the compiled ones. which() says what this process has.
"""

from __future__ import annotations

import os
from typing import Literal

from hubweir.kernels import pure, pure_columns

_WANTED = os.environ.get("HUBWEIR_KERNELS", "")
_RUNNING: Literal["compiled", "pure"] = "pure"

collect_deliveries = pure.collect_deliveries
count_events = pure.count_events
crc32c = pure.crc32c
deliver = pure.deliver
deliver_batches = pure.deliver_batches
find_key = pure.find_key
find_keys = pure.find_keys
find_offset = pure.find_offset
find_record = pure.find_record
group_deliveries = pure.group_deliveries
hash_key = pure.hash_key
ingest = pure.ingest
open_events = pure.open_events
scan_batches = pure.scan_batches
scan_frames = pure.scan_frames
scan_records = pure.scan_records

capture_block = pure_columns.capture_block
event_batches = pure_columns.event_batches
event_columns = pure_columns.event_columns
read_capture_block = pure_columns.read_capture_block
rows_by_partition = pure_columns.rows_by_partition
rows_digest = pure_columns.rows_digest
stored_columns = pure_columns.stored_columns

if _WANTED != "pure":
    try:
        from hubweir.kernels import _amqp, _capture, _columns, _keys, _record
    except ImportError:
        if _WANTED == "compiled":
            raise
    else:
        _RUNNING = "compiled"
        collect_deliveries = _amqp.collect_deliveries
        count_events = _record.count_events
        crc32c = _record.crc32c
        deliver = _amqp.deliver
        deliver_batches = _amqp.deliver_batches
        find_key = _record.find_key
        find_keys = _keys.find_keys
        find_offset = _record.find_offset
        find_record = _record.find_record
        group_deliveries = _keys.group_deliveries
        hash_key = _keys.hash_key
        ingest = _record.ingest
        open_events = _record.open_events
        scan_batches = _record.scan_batches
        scan_frames = _amqp.scan_frames
        scan_records = _record.scan_records

        capture_block = _capture.capture_block
        event_batches = _columns.event_batches
        event_columns = _columns.event_columns
        read_capture_block = _capture.read_capture_block
        rows_by_partition = _columns.rows_by_partition
        rows_digest = _columns.rows_digest
        stored_columns = _columns.stored_columns


def which() -> Literal["compiled", "pure"]:
    """Which twins this process runs."""
    return _RUNNING
