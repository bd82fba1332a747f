"""A store of logs in segment files, at work on its owner's loop. Floor: storage.

messaging_store.py opens one folder, under an epoch of writer_epochs.py and by the time of clock_keeper.py; open_log.py
makes a log of what is on disk. segment_log.py is the log, a front of those who share its state, log_state.py
with log_segments.py and log_health.py:

- appends: group_commit.py says what the next round carries of what waits (waiting.py), write_round.py writes it; a new
  segment: roll.py; the mark of an idle log: idle_mark.py
- reads: reads.py, pending_read.py, and what is known to be damaged, known_damage.py
- what owners keep beside records: log_notes.py, log_snapshots.py
- what goes: trimming.py
- what fails: failed_sync.py, steps.py; a disk that hangs: sync_watch.py; a full one: full_disk.py and reserve.py
"""
