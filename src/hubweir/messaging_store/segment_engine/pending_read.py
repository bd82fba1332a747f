"""A read or a search that goes to the files: offloaded, answered on the loop, unless it was cancelled.

When retention takes a file away while it is read, the question is asked again, from what is kept. A file that is gone
though the log still counts on it is lost: refused once, with an alarm, for asking again would never end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

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


class PendingRead:
    """See Pending. next: the question that was asked again in its place."""

    __slots__ = ("cancelled", "next")

    def __init__(self) -> None:
        self.cancelled = False
        self.next: PendingRead | None = None

    def cancel(self) -> None:
        self.cancelled = True
        if self.next is not None:
            self.next.cancel()


def read_away(
    state: LogState,
    call: Callable[[], Raw],
    answer: Callable[[Raw], Answer | Refused],
    on_done: Callable[[Answer | Refused], None],
    again: Callable[[], Answer | Pending],
) -> Pending:
    """Run call away from the loop, and on_done with what answer makes of its result, or with Refused."""
    pending = PendingRead()

    def done(result: Result[Raw]) -> None:
        if pending.cancelled:
            return
        value: Answer | Refused
        try:
            raw = result.value()
            state.alarms.end(READ_FAULT, state.about)
            try:
                value = answer(raw)
            except (OSError, StoreError):
                raise
            except Exception as fault:
                # On the loop, so the log's own state may be wrong: it stops, and this read is answered first.
                on_done(Refused(_faulted(state, fault)))
                raise
        except SegmentGone as gone:
            if not any(gone.segment is kept for kept in state.segments):
                outcome = again()
                if isinstance(outcome, PendingRead):
                    pending.next = outcome
                else:
                    on_done(outcome)  # type: ignore[arg-type]  # not pending, so an answer
                return
            value = Refused(_lost(state, gone))
        except _ReadFault as error:
            state.steps.report(error.fault)
            refusal = _faulted(state, error.fault)
            state.alarms.begin(READ_FAULT, state.about, f"a read ended in a fault of the service: {error.fault!r}")
            value = Refused(refusal)
        except StoreError as error:
            value = Refused(error)
        except OSError as error:
            if error.errno in NO_FILES:
                value = Refused(out_of_files(state.log_id, error))
            else:
                value = Refused(StoreError(f"log {state.log_id}: cannot be read: {error}"))
        on_done(value)

    def contained() -> Raw:
        try:
            return call()
        except (OSError, StoreError):
            raise
        except Exception as fault:  # reading changes nothing: this read is refused, the log goes on
            raise _ReadFault(fault) from fault

    state.steps.away(Lane.READS, contained, done)
    return pending


def refuse_soon(state: LogState, error: StoreError, on_done: Callable[[Refused], None]) -> Pending:
    """A read that is refused, not inside this call."""
    pending = PendingRead()
    state.steps.soon(lambda: None if pending.cancelled else on_done(Refused(error)))
    return pending


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
    if state.closing:
        return LogOffline(f"log {state.log_id} is closed")
    segment = gone.segment
    # What is in memory is served all the same.
    end = state.tail.start_index if segment.end_index is None else segment.end_index
    state.damage.found(segment.first_index, end, f"{segment.path} is missing")
    return gone.error(end)
