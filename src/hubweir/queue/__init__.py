"""Queues: messages enqueued, locked, settled, deferred, dead-lettered. Floor: domain.

Start with fragment.py, all that a fragment does on its log, and fragment_settings.py, what it is told; then
fragment_state.py, what a log says that there is. One log has two kinds of batches: messages as they came, and
operations (operation.py). The rows of messages are message_table.py, the locks that receivers hold lock_table.py, and
when something of them is due page_deadlines.py. Messages are read for receivers by message_reads.py; what a receiver
changed of one is changed_properties.py. A snapshot is fragment_snapshot.py. sub_queue.py and settle_outcome.py are the
words of receivers, and queue_part.py says which of them an address names.
"""
