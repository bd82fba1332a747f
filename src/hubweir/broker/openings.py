"""Opens logs of partitions and fragments: some beside each other, away from the loop, each again until it is open.

Opening a log takes from milliseconds to seconds, away from the loop. A few are opened at once; what is asked of a
partition meanwhile is refused as busy, which clients wait on and try again.

A partition that was made and cannot be opened now (no space for what must be rewritten, no file to be had, a disk that
fails, a folder that is not there) is tried again after 1 s and then ever later, up to every 30 s, until it works or is
deleted. An alarm stands meanwhile. A partition that is being made is not: who makes it takes it back.

After a crash: opening writes nothing that another opening would not write; see LogStore.open_log.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto

from hubweir.alarms import PARTITION_NOT_OPEN, Alarms
from hubweir.broker.commands.command import Answer, CreateLog, OnAnswer
from hubweir.broker.commands.process import Done, Refusal
from hubweir.broker.deadlines import BrokerDeadlines, Deadline
from hubweir.broker.refusals import refusal_of
from hubweir.broker.residents import Resident, Residents
from hubweir.env import Env
from hubweir.errors import (
    ENTITY_MOVED,
    INTERNAL_ERROR,
    SERVER_BUSY,
    STORE_OFFLINE,
    CorruptStore,
    HubweirError,
    LogFenced,
    LogLost,
    NewerFormat,
    ServiceError,
)
from hubweir.messaging_store.log import Log, Refused
from hubweir.messaging_store.log_store import LogStore, NotOpened, about_log

logger = logging.getLogger(__name__)


# The lane has four threads, and one is for logs that are made anew after a failed sync: senders wait for those.
OPENINGS_AT_ONCE = 3
FIRST_RETRY_MS, LAST_RETRY_MS = 1_000, 30_000
# A start whose partitions are all open by then has told of none. A line of the log takes 40 us: so many a turn.
TOLD_AFTER_MS = 3_000
TOLD_AT_ONCE = 50
STOPPING = "the service stops; connect again in a moment"


class _Stage(Enum):
    QUEUED = auto()
    RUNNING = auto()
    FAILED = auto()  # and tried again when its deadline is due


@dataclass(slots=True, eq=False)
class _Opening:
    """One partition that is not open. problem: why the last try failed; None before the first has ended."""

    command: CreateLog
    stage: _Stage = _Stage.QUEUED
    waiting: list[OnAnswer] = field(default_factory=list)
    on_ended: list[Callable[[], None]] = field(default_factory=list)  # the partition is to be removed
    problem: ServiceError | None = None
    delay_ms: int = FIRST_RETRY_MS
    retry: Deadline | None = None
    inside: list[str] = field(default_factory=list)  # under which ids it stands beside the log's

    @property
    def about(self) -> str:
        return about_log(self.command.log_id, self.command.name)


class Openings:
    """The partitions of one broker that are not open and are to be."""

    def __init__(
        self,
        env: Env,
        deadlines: BrokerDeadlines,
        store: LogStore,
        residents: Residents,
        make_resident: Callable[[CreateLog, Log], Resident],
        alarms: Alarms,
    ) -> None:
        """make_resident: what lives on a log that was opened; it may raise, and the log is closed again."""
        self._env = env
        self._deadlines = deadlines
        self._store = store
        self._residents = residents
        self._make_resident = make_resident
        self._alarms = alarms
        self._known: dict[str, _Opening] = {}  # by log id; bounded by the catalog, as the queue is
        self._inside: dict[str, _Opening] = {}  # by the ids of what else lives on the logs
        self._queue: deque[_Opening] = deque()
        self._running = 0
        self._look: Deadline | None = None
        self._on_stopped: Callable[[], None] | None = None

    def open(self, command: CreateLog, on_answer: OnAnswer) -> None:
        """Have a partition opened; on_answer with the end of the next try. Done when it is open."""
        if command.log_id in self._residents.by_log_id:
            self._env.call_soon(lambda: on_answer(Done()))
            return
        opening = self._known.get(command.log_id)
        if opening is None:
            opening = self._known[command.log_id] = _Opening(command)
            self._queue.append(opening)
        elif opening.stage is _Stage.FAILED:
            opening.command = command
            self._again(opening)
        for inner_id in command.inside:
            self._inside[inner_id] = opening
            opening.inside.append(inner_id)
        opening.waiting.append(on_answer)
        if self._look is None:
            self._look = self._deadlines.arm_in(TOLD_AFTER_MS, self)
        self._env.call_soon(self._pump)

    def why_not(self, resident_id: str) -> ServiceError | None:
        """Why a partition, or what lives on its log, is not open though it is to be; None: it is not known here."""
        opening = self._known.get(resident_id) or self._inside.get(resident_id)
        if opening is None:
            return None
        if opening.problem is not None:
            return opening.problem
        return ServiceError(STORE_OFFLINE, f"{opening.command.name} is being opened: try again in a moment")

    def end(self, log_id: str, on_ended: Callable[[], None]) -> None:
        """Try a partition no more; on_ended, maybe at once, when nothing of it is being opened."""
        opening = self._known.get(log_id)
        if opening is None:
            on_ended()
            return
        self._alarms.end_all(opening.about)
        if opening.stage is _Stage.RUNNING:
            opening.on_ended.append(on_ended)
            return
        self._forget(opening)
        self._answer(opening, refusal_of(_deleted(opening)))
        on_ended()

    def stop(self, on_stopped: Callable[[], None]) -> None:
        """Begin no opening any more; on_stopped, maybe at once, when none is under way."""
        self._on_stopped = on_stopped
        if self._look is not None:
            self._deadlines.cancel(self._look)
        for opening in [each for each in self._known.values() if each.stage is not _Stage.RUNNING]:
            self._forget(opening)
            self._answer(opening, refusal_of(ServiceError(STORE_OFFLINE, STOPPING)))
        self._stop_if_idle()

    def due(self, opening: _Opening | None, now_ms: int) -> None:
        """One that failed is tried again; None: those that take long are told."""
        if opening is None:
            self._tell_of_slow()
        else:
            self._again(opening)

    # Steps

    def _pump(self) -> None:
        while self._queue and self._running < OPENINGS_AT_ONCE:
            self._start(self._queue.popleft())

    def _start(self, opening: _Opening) -> None:
        opening.stage = _Stage.RUNNING
        self._running += 1
        self._try(opening)

    def _try(self, opening: _Opening) -> None:
        command = opening.command
        self._store.open_log(
            command.log_id,
            lambda opened: self._opened(opening, opened),
            durability=command.log_durability,
            name=command.name,
            makes=command.makes,
        )

    def _opened(self, opening: _Opening, log: Log | NotOpened) -> None:
        if isinstance(log, NotOpened):
            self._failed(opening, log.error)
            return
        if self._is_over(opening):
            self._close(opening, self._why_over(opening))
            return
        try:
            resident = self._make_resident(opening.command, log)
        except Exception as error:
            self._close(opening, error)
        else:
            resident.settle(lambda refused: self._settled(opening, resident, refused))

    def _settled(self, opening: _Opening, resident: Resident, refused: Refused | None) -> None:
        """Host it, or end it and close its log again: it may have asked for a turn or a deadline meanwhile."""
        if self._is_over(opening):
            end = resident.end if opening.on_ended else resident.stop
            end(lambda: self._close(opening, self._why_over(opening)))
        elif refused is not None:
            error = refused.error
            resident.stop(lambda: self._close(opening, error))
        else:
            self._residents.add(resident)
            self._alarms.end(PARTITION_NOT_OPEN, opening.about)
            self._ended(opening, Done())

    def _close(self, opening: _Opening, error: Exception) -> None:
        """Its log was opened, and it is not hosted all the same."""
        self._store.close_log(opening.command.log_id, lambda: self._failed(opening, error))

    def _is_over(self, opening: _Opening) -> bool:
        """Whether it is to be removed, or nothing is opened any more."""
        return bool(opening.on_ended) or self._on_stopped is not None

    def _why_over(self, opening: _Opening) -> ServiceError:
        return _deleted(opening) if opening.on_ended else ServiceError(STORE_OFFLINE, STOPPING)

    def _failed(self, opening: _Opening, error: Exception) -> None:
        refusal = self._refusal(opening, error)
        if self._is_over(opening):
            self._ended(opening, refusal)
            return
        if opening.command.makes:
            self._ended(opening, refusal)
            return
        self._alarms.begin(PARTITION_NOT_OPEN, opening.about, str(error) or type(error).__name__)
        opening.problem = _problem(opening, error)
        opening.stage = _Stage.FAILED
        opening.retry = self._deadlines.arm_in(opening.delay_ms, self, opening)
        opening.delay_ms = min(2 * opening.delay_ms, LAST_RETRY_MS)
        self._running -= 1
        self._answer(opening, refusal)
        self._pump()

    def _again(self, opening: _Opening) -> None:
        if opening.retry is not None:
            self._deadlines.cancel(opening.retry)
            opening.retry = None
        opening.stage = _Stage.QUEUED
        self._queue.append(opening)
        self._pump()

    def _ended(self, opening: _Opening, answer: Answer) -> None:
        """Nothing is opened of this partition any more, and it is not tried again."""
        self._running -= 1
        self._forget(opening)
        self._answer(opening, answer)
        for on_ended in opening.on_ended:
            on_ended()
        self._pump()
        self._stop_if_idle()

    def _forget(self, opening: _Opening) -> None:
        del self._known[opening.command.log_id]
        for inner_id in opening.inside:
            self._inside.pop(inner_id, None)
        if not self._known and self._look is not None:
            self._deadlines.cancel(self._look)
            self._look = None
        if opening.retry is not None:
            self._deadlines.cancel(opening.retry)
        if opening.stage is _Stage.QUEUED:
            self._queue.remove(opening)

    def _answer(self, opening: _Opening, answer: Answer) -> None:
        waiting, opening.waiting = opening.waiting, []
        for on_answer in waiting:
            on_answer(answer)

    def _stop_if_idle(self) -> None:
        if self._on_stopped is not None and not self._running:
            on_stopped, self._on_stopped = self._on_stopped, lambda: None
            on_stopped()

    def _tell_of_slow(self) -> None:
        """Listeners may be open by now: whoever asks whether the service is ready hears of what is not."""
        self._look = None
        self._tell_next([each for each in self._known.values() if not each.command.makes])

    def _tell_next(self, slow: list[_Opening]) -> None:
        """Some of them now, those that are left in the next turn of the loop."""
        for opening in slow[:TOLD_AT_ONCE]:
            if opening.problem is None and self._known.get(opening.command.log_id) is opening:
                self._alarms.begin(PARTITION_NOT_OPEN, opening.about, "its newest segment is being read")
        if len(slow) > TOLD_AT_ONCE:
            self._env.call_soon(lambda: self._tell_next(slow[TOLD_AT_ONCE:]))

    def _refusal(self, opening: _Opening, error: Exception) -> Refusal:
        if isinstance(error, HubweirError | OSError):
            return refusal_of(error)
        # A fault of ours: those that wait behind this one are opened all the same.
        logger.error("%s could not be opened", opening.about, exc_info=error)
        text = f"{opening.command.name} could not be opened: a fault of the service, see its log"
        return refusal_of(ServiceError(INTERNAL_ERROR, text))


def _deleted(opening: _Opening) -> ServiceError:
    return ServiceError(SERVER_BUSY, f"{opening.command.name} is being deleted; ask again later")


def _problem(opening: _Opening, error: Exception) -> ServiceError:
    """What clients are told until it is open: to wait, or that somebody must see to it first."""
    text = f"{opening.command.name} is not open: {error}; it is tried again within {LAST_RETRY_MS // 1000} s"
    if isinstance(error, LogFenced):
        return ServiceError(ENTITY_MOVED, text)
    if isinstance(error, LogLost):
        return ServiceError(STORE_OFFLINE, text)
    if isinstance(error, CorruptStore | NewerFormat):
        return ServiceError(INTERNAL_ERROR, text)
    return ServiceError(SERVER_BUSY, text)
