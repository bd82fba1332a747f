"""Messaging stores: folders of logs, kept through power cuts. Floor: storage.

Start with log.py, the interface every partition and catalog is written against; then record.py, what lies in a log (the
table of bytes is kernels/stored_batch.py): completion.py, operations.py and control_batch.py go on from there.
segment_log.py is the engine, of group_commit.py, which appends, reads.py, retention.py, log_snapshots.py and
log_notes.py.
recovery.py and segment_headers.py say what a start makes of what it finds, failed_sync.py and steps.py what a fault
does, files.py alone calls the operating system, and messaging_store.py opens one store folder under an epoch of
writer_epochs.py; inspection.py looks at one from outside. The page for operators is docs/on_disk.md.
"""
