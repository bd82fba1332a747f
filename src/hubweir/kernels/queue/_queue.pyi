"""Types of the compiled half that keeps the rows of a queue: those of its twins, which stand once."""

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
