"""Trims a log by age: its owner decides how long records stay, by what the log tells of their age.

The log then drops what it can of that (Log.trim). After a crash a part of it may be there again: the next decision
takes it.
"""

from __future__ import annotations

from hubweir.messaging_store.log import Log


def expire(log: Log, *, now_ms: int, retention_ms: int, keep_from: int | None = None, kept_longer_ms: int = 0) -> int:
    """Trim what is older than retention; return the new first index.

    now_ms: the time by which records grow old (TrustedClock.now_ms). keep_from: records from this index on stay, until
    they are older by kept_longer_ms than retention says: somebody must read them yet.
    """
    oldest_ms = now_ms - retention_ms
    index = log.older_than(oldest_ms)
    if keep_from is not None and keep_from < index:
        index = max(keep_from, log.older_than(oldest_ms - kept_longer_ms))
    return log.trim(index)
