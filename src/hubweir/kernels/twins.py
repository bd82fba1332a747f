"""Every kernel, in plain Python: the oracle of the tests, what runs where nothing compiles, and the list of kernels.

contract.py and columns_contract.py say what each promises. A kernel that is added is named here, once.
"""

from __future__ import annotations

from hubweir.kernels.batches.batches import find_offset as find_offset
from hubweir.kernels.batches.batches import find_record as find_record
from hubweir.kernels.batches.batches import scan_records as scan_records
from hubweir.kernels.batches.follow_batches import follow_batches as follow_batches
from hubweir.kernels.batches.scan_batches import scan_batches as scan_batches
from hubweir.kernels.buffers.crc import crc32c as crc32c
from hubweir.kernels.capture.capture_block import capture_block as capture_block
from hubweir.kernels.capture.read_capture import read_capture_block as read_capture_block
from hubweir.kernels.columns.event_batches import event_batches as event_batches
from hubweir.kernels.columns.event_batches import rows_digest as rows_digest
from hubweir.kernels.columns.event_columns import event_columns as event_columns
from hubweir.kernels.columns.partitions import rows_by_partition as rows_by_partition
from hubweir.kernels.columns.stored_columns import stored_columns as stored_columns
from hubweir.kernels.frames.deliver import deliver as deliver
from hubweir.kernels.frames.deliver_batches import deliver_batches as deliver_batches
from hubweir.kernels.frames.deliver_messages import deliver_messages as deliver_messages
from hubweir.kernels.frames.deliver_messages import encode_message as encode_message
from hubweir.kernels.frames.dispositions import collect_dispositions as collect_dispositions
from hubweir.kernels.frames.dispositions import merge_dispositions as merge_dispositions
from hubweir.kernels.frames.frames import collect_deliveries as collect_deliveries
from hubweir.kernels.frames.frames import scan_frames as scan_frames
from hubweir.kernels.keys.keys import find_keys as find_keys
from hubweir.kernels.keys.keys import group_deliveries as group_deliveries
from hubweir.kernels.keys.keys import hash_key as hash_key
from hubweir.kernels.keys.message_keys import find_message_keys as find_message_keys
from hubweir.kernels.messages.check_messages import check_messages as check_messages
from hubweir.kernels.messages.ingest import count_events as count_events
from hubweir.kernels.messages.ingest import find_key as find_key
from hubweir.kernels.messages.ingest import ingest as ingest
from hubweir.kernels.messages.open_events import open_events as open_events
from hubweir.kernels.queue.collect_records import collect_records as collect_records
from hubweir.kernels.queue.packed_rows import pack_rows as pack_rows
from hubweir.kernels.queue.packed_rows import unpack_rows as unpack_rows
from hubweir.kernels.queue.queue_rows import activate_messages as activate_messages
from hubweir.kernels.queue.queue_rows import add_messages as add_messages
from hubweir.kernels.queue.queue_rows import clear_marks as clear_marks
from hubweir.kernels.queue.queue_rows import copy_messages as copy_messages
from hubweir.kernels.queue.queue_rows import count_deliveries as count_deliveries
from hubweir.kernels.queue.queue_rows import drop_messages as drop_messages
from hubweir.kernels.queue.queue_rows import due_messages as due_messages
from hubweir.kernels.queue.queue_rows import give_messages as give_messages
from hubweir.kernels.queue.queue_rows import least_index as least_index
from hubweir.kernels.queue.queue_rows import mark_messages as mark_messages
from hubweir.kernels.queue.queue_rows import select_messages as select_messages
from hubweir.kernels.queue.queue_rows import unlock_messages as unlock_messages
from hubweir.kernels.queue.read_fields import read_fields as read_fields
from hubweir.kernels.queue.tokens import end_locks as end_locks
from hubweir.kernels.queue.tokens import ended_locks as ended_locks
from hubweir.kernels.queue.tokens import find_locks as find_locks
from hubweir.kernels.queue.tokens import message_tokens as message_tokens
from hubweir.kernels.queue.tokens import number_ranges as number_ranges
from hubweir.kernels.queue.tokens import read_tokens as read_tokens

KERNELS = tuple(sorted(name for name, value in list(globals().items()) if getattr(value, "__name__", "") == name))
