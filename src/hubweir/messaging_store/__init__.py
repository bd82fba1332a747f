"""Messaging stores: logs, kept through power cuts. Floor: storage.

This folder is what a log's owner sees, and what each engine must do. Start with log.py, the interface that every
partition and catalog is written against, and log_store.py, many logs of one owner. record.py is what lies in a log (the
table of bytes is kernels/stored_batch.py): operations.py and control_batch.py are two kinds of it, completion.py fills
in what a log says of a batch. tail.py keeps the newest runs in memory, trusted_clock.py tells the time by which events
are stamped and grow old, retention.py is what an owner drops by it.

Two rooms are the engine that keeps logs in segment files. disk/ is what lies on a disk, and how it is found there
again: functions that block, in any thread. segment_engine/ is a store with its logs at work, on its owner's loop. The
page for operators is docs/on_disk.md, the one for another engine docs/extending.md.
"""
