"""LogStore: many logs of one owner, as an interface. A broker owns one, and the catalogs of a service lie in another.

What a store holds says nothing of whose a log is: its owner knows its logs by their ids, and opens each by name. The
store of segment files is segment_engine/messaging_store.py.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSet, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hubweir.env import Env, Result
from hubweir.messaging_store.log import Durability, Log
from hubweir.messaging_store.trusted_clock import TrustedClock

L = TypeVar("L", bound=Log)


@dataclass(frozen=True, slots=True)
class NotOpened:
    """A log that could not be opened: a StoreError or an OSError says why, anything else is a fault of ours."""

    error: Exception


class LogStore(Protocol):
    """See the module's text. All methods are called on the owner's loop; callbacks come there, not inside the call.

    clock: what stamps records, and by which they grow old.
    """

    @property
    def clock(self) -> TrustedClock: ...

    def keep_clock(self) -> None:
        """Tell what is wrong with the clock, and make what it knows durable, away from the loop. Cheap."""

    def look_at_syncs(self) -> None:
        """Tell of a log whose sync does not end, and when it did. Cheap; to be called every few seconds."""

    def log_ids(self) -> Sequence[str]:
        """Ids of all logs that are in the store, or were and are lost, in order. It may block: for a start."""

    def open_log(
        self,
        log_id: str,
        on_done: Callable[[Log | NotOpened], None],
        *,
        durability: Durability | None,
        name: str,
        makes: bool,
    ) -> None:
        """Open a log under a new lease; the log itself when it is open. One at a time of a log; others beside it.

        durability: None: as the log says itself. name: what people call it, for alarms (about_log). makes: its making
        was decided, and may have been interrupted: it is made when it never was, durably. What is damaged or missing
        has its alarm when the log comes. NotOpened: LogLost when it is not there or nothing of it is left, which makes
        no log anew; LogFenced when the store is another's; CorruptStore, NewerFormat; LogOffline, DiskFull or OSError
        when it may be tried again,
        as behind the end of a close that is under way.
        After a crash: the log is there as before, or as it was made, or not at all.
        """

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close the log as Log.close does; does nothing but call back when it is not open."""

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove a closed log with all that is in it, durably; only calls back when it is gone.

        The result raises OSError: the log is there in part, and is to be deleted again. StoreError, at once, when the
        log is open, being opened or being deleted.
        """

    def remove_unfinished(self) -> None:
        """Remove, away from the loop, what is left of moves of logs that were interrupted.

        What cannot be removed now is left for the next start. It holds up `close`, and nothing else.
        """

    def raise_epoch(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """Write above this writer epoch from now on, also after a crash: logs that bear it come into the store.

        The result is the epoch; it raises LogFenced or OSError. CorruptStore, at once: no epoch is left above it.
        """

    def look_for_owner(self) -> None:
        """See whether another process owns the store; then every log of it is offline for good."""

    def close(self, on_done: Callable[[], None]) -> None:
        """Close every log, then give the store free for its next owner."""


def about_log(log_id: str, name: str) -> str:
    """What alarms call a log. name: "" when nobody knows its name."""
    return f"{name} (log {log_id})" if name else f"log {log_id}"


def close_open_log(
    log_id: str, logs: MutableMapping[str, L], closing: MutableSet[str], env: Env, on_done: Callable[[], None]
) -> None:
    """LogStore.close_log of a store that has these logs open. closing: those of them that are not for long."""
    log = logs.get(log_id)
    if log is None:
        env.call_soon(on_done)
        return

    def closed() -> None:
        if logs.get(log_id) is log:
            del logs[log_id]
            closing.discard(log_id)
        on_done()

    closing.add(log_id)
    log.close(closed)
