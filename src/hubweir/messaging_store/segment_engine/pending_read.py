"""A read or a search that goes to the files: offloaded, answered on the loop, unless it was cancelled.

When retention takes a file away while it is read, the question is asked again, from what is kept. A file that is gone
though the log still counts on it is lost: refused once, with an alarm, for asking again would never end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast

from hubweir.alarms import READ_FAULT
from hubweir.env import Lane, Result
from hubweir.errors import LogOffline, StoreError
from hubweir.messaging_store.disk.log_reader import SegmentGone
from hubweir.messaging_store.disk.segment import NO_FILES
from hubweir.messaging_store.log import Pending, Refused
from hubweir.messaging_store.segment_engine.log_state import LogState
from hubweir.messaging_store.segment_engine.write_round import out_of_files

Raw = TypeVar("Raw")
Answer = TypeVar("Answer")


class PendingRead(Generic[Raw, Answer]):
    """One question that goes to the files. See Pending, and read_away.

    _next: the question that was asked again in its place.
    """

    __slots__ = ("_again", "_answer", "_call", "_is_cancelled", "_next", "_on_done", "_state")

    def __init__(
        self,
        state: LogState,
        call: Callable[[], Raw],
        answer: Callable[[Raw], Answer | Refused],
        on_done: Callable[[Answer | Refused], None],
        again: Callable[[], Answer | Pending] | None,
    ) -> None:
        self._state = state
        self._call = call
        self._answer = answer
        self._on_done = on_done
        self._again = again
        self._is_cancelled = False
        self._next: Pending | None = None

    def cancel(self) -> None:
        """See Pending.cancel."""
        self._is_cancelled = True
        if self._next is not None:
            self._next.cancel()

    def begin(self, lane: Lane) -> None:
        """Ask."""
        self._state.steps.away(lane, self._contained, self._ended)

    def _contained(self) -> Raw:
        """In a thread. Reading changes nothing: after a fault of ours this read is refused, and the log goes on."""
        try:
            return self._call()
        except (OSError, StoreError):
            raise
        except Exception as fault:
            raise _ReadFault(fault) from fault

    def _ended(self, result: Result[Raw]) -> None:
        if self._is_cancelled:
            return
        state = self._state
        try:
            raw = result.value()
            state.alarms.end(READ_FAULT, state.about)
            value = self._made(raw)
        except SegmentGone as gone:
            if self._again is not None and not any(gone.segment is kept for kept in state.segments.kept):
                self._ask_again(self._again)
                return
            value = Refused(_lost(state, gone))
        except _ReadFault as error:
            state.steps.report(error.fault)
            state.alarms.begin(READ_FAULT, state.about, f"a read ended in a fault of the service: {error.fault!r}")
            value = Refused(_faulted(state, error.fault))
        except StoreError as error:
            value = Refused(error)
        except OSError as error:
            if error.errno in NO_FILES:
                value = Refused(out_of_files(state.log_id, error))
            else:
                value = Refused(StoreError(f"log {state.log_id}: cannot be read: {error}"))
        self._on_done(value)

    def _made(self, raw: Raw) -> Answer | Refused:
        """What answer makes of the result; a fault in it is raised when this read was answered."""
        try:
            return self._answer(raw)
        except (OSError, StoreError):
            raise
        except Exception as fault:
            # On the loop, so the log's own state may be wrong: it stops.
            self._on_done(Refused(_faulted(self._state, fault)))
            raise

    def _ask_again(self, again: Callable[[], Answer | Pending]) -> None:
        outcome = again()
        if isinstance(outcome, PendingRead | _Refusal):
            self._next = outcome
        else:
            self._on_done(cast("Answer", outcome))


def read_away(
    state: LogState,
    call: Callable[[], Raw],
    answer: Callable[[Raw], Answer | Refused],
    on_done: Callable[[Answer | Refused], None],
    again: Callable[[], Answer | Pending] | None = None,
    *,
    lane: Lane = Lane.READS,
) -> Pending:
    """Run call away from the loop, and on_done with what answer makes of its result, or with Refused.

    again: asks the same once more, when a file was gone that the log does not count on any more; None: no file of a
    segment can be gone.
    """
    pending = PendingRead(state, call, answer, on_done, again)
    pending.begin(lane)
    return pending


def refuse_soon(state: LogState, error: StoreError, on_done: Callable[[Refused], None]) -> Pending:
    """A read that is refused, not inside this call."""
    refusal = _Refusal()
    state.steps.soon(lambda: None if refusal.is_cancelled else on_done(Refused(error)))
    return refusal


class _Refusal:
    """The Pending of a read that is refused."""

    __slots__ = ("is_cancelled",)

    def __init__(self) -> None:
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class _ReadFault(StoreError):
    """A fault of ours in the part of a read that is away from the loop."""

    def __init__(self, fault: Exception) -> None:
        super().__init__(str(fault))
        self.fault = fault


def _faulted(state: LogState, fault: Exception) -> LogOffline:
    """The refusal of a read that ended in a fault of ours: retriable."""
    text = f"log {state.log_id}: a read ended in a fault of the service ({type(fault).__name__}: {fault}); try again"
    return LogOffline(text)


def _lost(state: LogState, gone: SegmentGone) -> StoreError:
    """The refusal for a file that should be there; alarmed, unless its log is closed and may be deleted."""
    if state.health.is_closing:
        return LogOffline(f"log {state.log_id} is closed")
    segment = gone.segment
    # What is in memory is served all the same.
    end = state.tail.start_index if segment.end_index is None else segment.end_index
    state.damage.found(segment.first_index, end, f"{segment.path} is missing")
    return gone.error(end)
