"""What a broker asks of the messaging store that it owns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from hubweir.env import Result
from hubweir.messaging_store.log import Durability, Log
from hubweir.messaging_store.segment_engine.open_log import LogOpening, OpenedLog
from hubweir.messaging_store.trusted_clock import TrustedClock


class LogStore(Protocol):
    """The part of a messaging store that a broker uses. clock: what stamps and removes its events."""

    @property
    def clock(self) -> TrustedClock: ...

    def keep_clock(self) -> None:
        """Tell what is wrong with the clock, and make what it knows durable, away from the loop. Cheap."""

    def begin_opening(self, log_id: str, *, durability: Durability, name: str, makes: bool) -> LogOpening:
        """Have a log opened by recover_log. name: what alarms call it. makes: it is made when it is not there."""

    def recover_log(self, opening: LogOpening) -> OpenedLog:
        """Open the log for add_log; in any thread. LogLost when it is not there, other StoreErrors or OSError.

        Raises EpochBehind when it is to be tried again behind take_epoch_above.
        """

    def add_log(self, opened: OpenedLog) -> Log:
        """The log is open from now on."""

    def take_epoch_above(self, newest: int, on_done: Callable[[Result[int]], None]) -> None:
        """Make a writer epoch durable that is above one found in a log."""

    def close_log(self, log_id: str, on_done: Callable[[], None]) -> None:
        """Close the log as Log.close does; does nothing but call back when it is not open."""

    def delete_log(self, log_id: str, on_done: Callable[[Result[None]], None]) -> None:
        """Remove the files of a closed log, away from the loop; only calls back when it is gone. Result: OSError."""

    def look_for_owner(self) -> None:
        """See, away from the loop, whether another process owns the folder; then every log is offline for good."""

    def close(self, on_done: Callable[[], None]) -> None:
        """Close every log, with its idle mark, and give the folder free."""
