"""The kernels in plain Python: the oracle of the tests, and what runs where nothing compiles.

One page per idea: values and sections (pure_values.py), frames in (pure_frames.py), deliveries to records
(pure_ingest.py), their keys and partitions (pure_keys.py), records to frames (pure_deliver.py), batches to frames
(pure_deliver_batches.py), stored batches (pure_batches.py), delivered messages for a client (pure_events.py). This page
is the whole of contract.py under one name.
"""

from __future__ import annotations

from hubweir.kernels.pure_batches import crc32c, find_offset, find_record, scan_batches, scan_records
from hubweir.kernels.pure_deliver import deliver
from hubweir.kernels.pure_deliver_batches import deliver_batches
from hubweir.kernels.pure_events import open_events
from hubweir.kernels.pure_frames import collect_deliveries, scan_frames
from hubweir.kernels.pure_ingest import count_events, find_key, ingest
from hubweir.kernels.pure_keys import find_keys, group_deliveries, hash_key

__all__ = [
    "collect_deliveries",
    "count_events",
    "crc32c",
    "deliver",
    "deliver_batches",
    "find_key",
    "find_keys",
    "find_offset",
    "find_record",
    "group_deliveries",
    "hash_key",
    "ingest",
    "open_events",
    "scan_batches",
    "scan_frames",
    "scan_records",
]
