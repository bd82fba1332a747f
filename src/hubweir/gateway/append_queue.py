"""The open runs of one process: what links brought in this turn of the loop, by the log that it goes to.

Every log that got events or messages has one open run, and the submissions in it: which deliveries, of which link, the
run holds. At the end of the loop turn each run goes to its broker in one command; its submissions are answered
together when the broker has answered. Of very many runs some go now and the others at the end of the next turn. So
append order is arrival order, and one write serves all links of a turn. After a crash: a run that was not answered is
stored or not; no link was told that it is.
"""

from __future__ import annotations

import logging
from array import array
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.counters import Latency
from hubweir.env import Env
from hubweir.errors import INTERNAL_ERROR
from hubweir.event_hub.open_run import OpenRun
from hubweir.gateway.tracing import Tracer
from hubweir.queue.traced_step import Trace
from hubweir.throughput_unit.admission import Admitted

logger = logging.getLogger(__name__)

# A run takes 0.1 ms to submit, and as much when its log takes it up; a hub of 1,024 partitions may fill one of each.
SUBMITTED_AT_ONCE = 64


class Submitter(Protocol):
    """A publisher link that waits for the answer to deliveries of its own."""

    def answered(self, submission: Submission, answer: Answer) -> None:
        """The broker's word about deliveries of this submitter: EventsAppended, MessagesEnqueued or Refusal."""


class DeliveryRange(Struct, frozen=True, gc=False):
    """Deliveries first_id to last_id of one link, both included: serial numbers of 32 bits, which wrap."""

    first_id: int
    last_id: int


class Submission(Struct, frozen=True):
    """Deliveries of one link, and the bytes they came in.

    ids: all of a range, or each, where others of the link went elsewhere; of whoever does not number deliveries, any.
    settled: the sender wants no outcome; the submission only gives the bytes back. deliveries: how many.
    """

    submitter: Submitter
    ids: DeliveryRange | array[int]
    deliveries: int
    size_bytes: int
    settled: bool


class Units(Protocol):
    """What a run was charged to."""

    def not_stored(self, admitted: Admitted, answer: Answer) -> None:
        """The answer to a run that was charged, when it is not that it was stored."""


class PendingAppend(Struct):
    """A run on its way to its broker and the answer on its way back: whose deliveries it holds, and what it has cost.

    units, admitted: where it was charged, and with what; None before, and for good where it is refused first. clock,
    latency: what measures how long it takes until it is answered, since began_s; None: nothing does.
    """

    submissions: list[Submission]
    units: Units | None = None
    admitted: Admitted | None = None
    began_s: float = 0.0
    clock: Callable[[], float] | None = None
    latency: Latency | None = None
    trace: Trace | None = None  # of what clients trace in it

    def answered(self, answer: Answer) -> None:
        """Give back what it cost for nothing, and tell each submitter, whatever happens to one of them. The first
        answer counts: another finds nobody who waits.
        """
        submissions, self.submissions = self.submissions, []
        units, self.units = self.units, None
        if units is not None and self.admitted is not None and not isinstance(answer, EventsAppended):
            units.not_stored(self.admitted, answer)
        latency = self.latency
        if latency is not None and self.clock is not None and submissions and not isinstance(answer, Refusal):
            took_s = self.clock() - self.began_s
            latency.sum_s += took_s
            latency.buckets[int(took_s * 1e6).bit_length()] += 1
        if self.trace is not None and submissions:
            self.trace.ended(answer.condition.symbol if isinstance(answer, Refusal) else "")
        for submission in submissions:
            try:
                submission.submitter.answered(submission, answer)
            except Exception:
                logger.exception("a fault of the service: a link could not be told how its sends ended")


class Taker(Protocol):
    """Whoever takes commands for logs: a client of their broker, or one that chooses the log (fragment_turn.py)."""

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """See BrokerClient."""


Store = TypeVar("Store", bound=Command)
Stores = TypeVar("Stores", bound=Command, covariant=True)


class LogPlace(Protocol[Stores]):
    """Where the log of a partition or of a fragment lives (directory.py)."""

    @property
    def entity(self) -> str: ...

    @property
    def log_id(self) -> str: ...

    @property
    def broker(self) -> Taker: ...

    def store(self, run: bytearray, count: int, size_bytes: int) -> Stores:
        """The command that stores a run there. count: its events or messages; size_bytes: of their deliveries."""


class LogQueue(Generic[Store]):
    """The open run of one log, and who waits for it.

    Whoever adds deliveries to `run` says whose they are with one call of `add_submissions`, before anything else is
    added; the run is submitted at the end of the turn.
    """

    __slots__ = ("_began_s", "_is_due", "_queue", "_size_bytes", "_submissions", "place", "run")

    def __init__(self, queue: AppendQueue[Store], place: LogPlace[Store], run: OpenRun) -> None:
        self._queue = queue
        self._submissions: list[Submission] = []
        self._size_bytes = 0  # of the payloads in the run
        self._began_s = 0.0  # when the first of them came
        self._is_due = False
        self.place = place
        self.run = run

    def add_submissions(self, submissions: list[Submission]) -> None:
        """Remember who waits for all deliveries that were added, and see to it that the run is submitted."""
        if not self._submissions:
            self._began_s = self._queue.clock()
        self._submissions += submissions
        for submission in submissions:
            self._size_bytes += submission.size_bytes
        if self._size_bytes >= self._queue.run_limit_bytes:
            self.submit_run()
        elif not self._is_due:
            self._is_due = True
            self._queue.submit_later(self)

    def submit_run(self) -> None:
        """Hand the run over now; does nothing when it is empty."""
        self._is_due = False
        if not self._submissions:
            return
        pending = PendingAppend(
            self._submissions, began_s=self._began_s, clock=self._queue.clock, latency=self._queue.latency
        )
        self._submissions = []
        size_bytes, self._size_bytes = self._size_bytes, 0
        place, events = self.place, self.run.events
        run = self.run.take_run()
        if self._queue.tracer is not None:
            pending.trace = self._queue.tracer.sends(place.entity, run, self._began_s)
        try:
            self._queue.append(place.broker, place.store(run, events, size_bytes), pending)
        except Exception:
            # The other logs of this turn, and the next turn of this one, must not suffer from it.
            logger.exception("a fault of the service at log %s of %s", place.log_id, place.entity)
            text = "The service has a fault; it is in its log."
            pending.answered(Refusal(INTERNAL_ERROR, text, known=False))


class AppendQueue(Generic[Store]):
    """The open runs of this process for one kind of log.

    append: takes each run to its broker, and may refuse it instead (NamespaceUnits.append). run_limit_bytes: a run that
    holds payloads of so many bytes is submitted at once. names_keys: of the runs (OpenRun). latency: of accepted runs.
    tracer: None where nothing is traced.
    """

    def __init__(
        self,
        env: Env,
        append: Callable[[Taker, Store, PendingAppend], None],
        *,
        run_limit_bytes: int,
        latency: Latency,
        names_keys: bool = True,
        tracer: Tracer | None = None,
    ) -> None:
        self._env = env
        self.clock = env.monotonic_s
        self.latency = latency
        self.tracer = tracer
        self.append = append
        self._names_keys = names_keys
        self._queues: dict[str, LogQueue[Store]] = {}
        self._due: list[LogQueue[Store]] = []
        self.run_limit_bytes = run_limit_bytes

    def of(self, place: LogPlace[Store]) -> LogQueue[Store]:
        """The queue of this log."""
        queue = self._queues.get(place.log_id)
        if queue is None:
            run = OpenRun(names_keys=self._names_keys)
            queue = self._queues[place.log_id] = LogQueue(self, place, run)
        return queue

    def forget(self, log_id: str) -> None:
        """The log is gone: what is open is still submitted, and refused by its broker."""
        queue = self._queues.pop(log_id, None)
        if queue is not None:
            queue.submit_run()

    def submit_later(self, queue: LogQueue[Store]) -> None:
        """Submit this queue when the turn ends."""
        if not self._due:
            self._env.at_turn_end(self.submit_all)
        self._due.append(queue)

    def submit_all(self) -> None:
        """Submit the open runs in the order in which they were opened; those beyond a number in the next turn."""
        due, self._due = self._due[:SUBMITTED_AT_ONCE], self._due[SUBMITTED_AT_ONCE:]
        if self._due:
            self._env.call_soon(self.submit_all)
        for queue in due:
            queue.submit_run()
