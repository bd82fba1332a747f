"""Runs the capture of one partition beside its log: capture/capture.py decides, this waits, reads and writes.

One step at a time: a look at the window, by the clock; then for a file: the intent is made durable, the log is read in
pieces that are encoded and written on threads of the pool, the file is committed, the mark is moved. The loop only
hands over; a file of any size costs it one short turn a piece, and between pieces it rests when publishers are to come
first. Reading the log here is no reader of a consumer group and no egress.

Any failure (a destination that is away, a full disk) is waited out, ever longer, and the same step is done again from
the intent on. After a crash: see capture/capture_mark.py.
Long because the steps of one file, and what may fail of each, are one thing to read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from hubweir.broker.capture.captured_file import CapturedFile
from hubweir.broker.capture.failure import CaptureFailure
from hubweir.broker.capture.intent import claim_name, note_intent, release_name
from hubweir.broker.capture.places import CaptureTools
from hubweir.broker.capture.rest import CaptureRest
from hubweir.broker.capture.window_end import find_window_end
from hubweir.broker.deadlines import Deadline
from hubweir.capture.capture import Capture
from hubweir.capture.capture_mark import CaptureMark, note_mark
from hubweir.env import Lane, Result
from hubweir.errors import CorruptStore, HubweirError
from hubweir.messaging_store.log import Log, Refused, Run
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.service_log import CAPTURED_FILE

logger = logging.getLogger(__name__)

T = TypeVar("T")

# How often a window is looked at for its size; its time ends to the millisecond.
LOOK_MS = 1_000
# Each waits for its turn on the loop; larger ones fall out of the processor's cache, and cost half as much again.
PIECE_BYTES = 2 * 1024 * 1024


class CaptureRunner:
    """See the module's text. Used on the loop."""

    def __init__(self, tools: CaptureTools, log: Log, capture: Capture, name: str) -> None:
        """name: for people, "capture of ...". The mark is durable already."""
        self._tools = tools
        self._env = tools.env
        self._log = log
        self._capture = capture
        self._name = name
        self._deadlines = tools.deadlines
        self._next_look: Deadline | None = None
        self._busy = False
        self._waits: Callable[[], None] | None = None  # for a slot
        self._slot = capture.description.destination
        quota_bytes = tools.places.quota.size_bytes
        self._rest = CaptureRest(tools.env, tools.deadlines, tools.counters, tools.pace, quota_bytes)
        self._failure = CaptureFailure(name, quota_bytes, tools.counters, tools.alarms)
        self._is_checked = False  # whether files can be made where they are to go now
        self._stopped = False
        self._on_idle: list[Callable[[], None]] = []
        self._again = capture.mark.intent is not None  # a file of this intent may be there
        self.captured_events = self.captured_bytes = 0  # in files, since it began
        self._lost: list[tuple[int, int]] = []  # to the file that an attempt before made, if it made one

    # What it tells

    @property
    def mark(self) -> CaptureMark:
        return self._capture.mark

    @property
    def behind_events(self) -> int:
        """Events in the log that are in no finished file."""
        return max(0, self._log.bounds.next_index - self.mark.next_index)

    @property
    def behind_bytes(self) -> int:
        """Their size as the log counts it."""
        return max(0, self._log.bounds.next_offset - self.mark.next_offset)

    @property
    def keep_from(self) -> int | None:
        """What retention must leave; None when capture is so far behind that retention may go on without it."""
        return None if self._failure.is_over_quota(self.behind_bytes) else self._capture.keep_from

    @property
    def kept_longer_ms(self) -> int:
        """How long retention waits for it at most."""
        return self._tools.places.quota.age_ms

    @property
    def failure(self) -> str | None:
        """What fails now."""
        return self._failure.text

    # Its life

    def start(self) -> None:
        self._look()

    def change(self, description: CaptureDescription) -> None:
        """Other settings: the open window goes on with them, a file that is being made goes on as it is."""
        its, self._capture.description = self._capture.description, description
        if (its.destination, its.container) != (description.destination, description.container):
            self._is_checked = False
            if self.mark.intent is None:  # nothing goes to the other place any more
                self._failure.ended(self.behind_events)
        if not self._busy:
            self._look()

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Begin nothing any more; on_idle is called, maybe at once, when no call of it is under way."""
        self._stopped = True
        if self._next_look is not None:
            self._deadlines.cancel(self._next_look)
        if self._waits is not None:
            # Not until others have made their files: whoever deletes a hub, or ends capture, waits for this.
            self._tools.slots.withdraw(self._slot, self._waits)
            self._waits, self._busy = None, False
        if self._busy:
            self._on_idle.append(on_idle)
            self._rest.stop()
        else:
            on_idle()

    def due(self, key: None, now_ms: int) -> None:
        """Look again."""
        self._look()

    # The window

    def _look(self) -> None:
        """End the window, if it is over; else look again later."""
        if self._stopped or self._busy:
            return
        if self._next_look is not None:
            self._deadlines.cancel(self._next_look)
        if self.mark.intent is not None:
            self._begin(lambda: self._make(self.mark))
            return
        bounds = self._log.bounds
        gone = self._capture.pass_over_trimmed(bounds)
        if gone is not None:
            self._failure.lost([gone])
        if not self._is_checked and self._capture.description.destination is not CaptureDestination.LOCAL_FOLDER:
            self._begin(self._check, is_file=False)
            return
        wait_ms = self._capture.wait_ms(bounds, self._env.monotonic_ms())
        if not wait_ms and self._capture.may_skip(bounds):
            self._capture.open_next(self._env.monotonic_ms())
            wait_ms = self._capture.wait_ms(bounds, self._env.monotonic_ms())
        if wait_ms:
            self._next_look = self._deadlines.arm_in(min(wait_ms, LOOK_MS), self)
        else:
            self._begin(self._end_window)

    def _check(self) -> None:
        """Look at the destination before there is a file for it: who enables capture is told now what is wrong."""
        its, places = self._capture.description, self._tools.places

        def checked(_: None) -> None:
            self._is_checked = its is self._capture.description  # else it was changed meanwhile
            self._failure.ended(self.behind_events)
            self._end()

        self._offload(lambda: places.destination(its.destination, its.container).check(), checked)

    def _end_window(self) -> None:
        """Find where the window ends: at its size, when the log has come that far."""
        bounds = self._log.bounds
        size_end = self._capture.window.size_end(bounds.next_offset)
        if size_end is None:
            self._intend(bounds.next_index, bounds.next_offset)
            return

        def found(end: int | Refused | None) -> None:
            if isinstance(end, Refused):
                self._fail(end.error)
            elif end is None:
                self._end()
            else:
                self._intend(end, size_end)

        find_window_end(self._log, self._capture, size_end, found)

    def _intend(self, end: int, end_offset: int) -> None:
        """Make the intent durable, under a name that nobody else has."""
        now_ms, monotonic_ms = self._tools.clock.stamp_ms(), self._env.monotonic_ms()

        def intend(last_second: int) -> CaptureMark:
            return self._capture.intend(
                end, end_offset, now_ms=now_ms, monotonic_ms=monotonic_ms, last_second=last_second
            )

        self._offload(lambda: claim_name(self._tools, intend), self._note_intent)

    def _note_intent(self, mark: CaptureMark) -> None:
        note_intent(
            self._tools, self._log, mark,
            lambda refused: self._make(mark) if refused is None else self._fail(refused.error),
        )  # fmt: skip

    # The file

    def _make(self, mark: CaptureMark) -> None:
        self._capture.mark = mark
        if mark.intent is None:
            self._end()
            return
        self._read_on(CapturedFile(mark.intent, mark.sync_marker(mark.intent.first)))

    def _read_on(self, making: CapturedFile) -> None:
        """Read the next piece of the log, or finish the file."""
        if self._stopped:
            self._give_up(making)
            return
        if making.next >= making.intent.end:
            self._commit(making)
            return

        def answered(run: Run | Refused) -> None:
            if isinstance(run, Run):
                self._write(making, run)
            elif isinstance(run.error, CorruptStore) and run.error.resume_index is not None:
                self._lose(making, run.error.resume_index)
                self._read_on(making)
            else:
                self._fail(run.error, making)

        self._rest.begin_piece()
        answer = self._log.read(making.next, max_bytes=PIECE_BYTES, on_done=answered)
        if isinstance(answer, Run):
            answered(answer)

    def _write(self, making: CapturedFile, run: Run) -> None:
        """Encode a piece and write it, on a thread."""
        if run.first_index > making.next or not len(run.data):
            making.is_short = True
            trimmed = min(self._log.bounds.first_index, run.first_index)
            if trimmed > making.next:
                self._lose(making, trimmed)
            # What is left are numbers that a relaxed log skipped, or that a power cut took from it.
            making.next = max(making.next, run.first_index if len(run.data) else making.intent.end)
        if making.next >= making.intent.end:
            self._read_on(making)
            return

        def written(_: None) -> None:
            making.next = run.next_index
            self._rest.end_piece(len(run.data), self.behind_bytes, lambda: self._read_on(making))

        self._offload(lambda: making.add_events(self._tools.places, run), written, making)

    def _lose(self, making: CapturedFile, resume: int) -> None:
        """The log has no events before resume any more."""
        end = min(max(resume, making.next + 1), making.intent.end)
        making.is_short = True
        making.lost.append((making.next, end))
        making.next = end

    def _commit(self, making: CapturedFile) -> None:
        env, places, again = self._env, self._tools.places, self._again
        self._again = True

        def commit() -> None:
            destination = places.destination(making.intent.destination, making.intent.container)
            if making.is_short and again and destination.exists(making.intent.name):
                # It was finished when the log had more of these events.
                making.abandon()
                return
            making.write(places, making.blocks.flush())
            assert making.archive is not None
            self._lost = making.all_lost
            env.fault("capture.before_commit")
            making.archive.commit()
            env.fault("capture.after_commit")

        self._offload(commit, lambda _: self._move(making), making)

    def _move(self, making: CapturedFile) -> None:
        """The file is there: move the mark behind it."""
        lost, env, places = self._lost, self._env, self._tools.places
        now_ms, monotonic_ms = self._tools.clock.stamp_ms(), env.monotonic_ms()
        moved = self._capture.finished(self._log.bounds, lost, now_ms=now_ms, monotonic_ms=monotonic_ms)

        def noted(refused: Refused | None) -> None:
            if refused is not None:
                self._fail(refused.error)
                return
            env.fault("capture.after_mark")
            self._capture.mark = moved
            self._again, self._lost = False, []
            self._offload(lambda: release_name(places, making.intent), lambda _: self._finished(making, lost))

        note_mark(self._log, moved, now_ms=now_ms, on_done=noted)

    def _finished(self, making: CapturedFile, lost: list[tuple[int, int]]) -> None:
        counters = self._tools.counters
        counters["capture.files"] += 1
        counters["capture.events"] += making.blocks.events
        counters["capture.bytes"] += making.size
        intent = making.intent
        CAPTURED_FILE.say(
            logger, capture=self._name, file=intent.name, events=making.blocks.events, first=intent.first,
            last=intent.end - 1, bytes=making.size, behind=self.behind_events,
        )  # fmt: skip
        self.captured_events += making.blocks.events
        self.captured_bytes += making.size
        self._failure.lost(lost)
        self._failure.ended(self.behind_events)
        self._end()

    # Steps

    def _begin(self, step: Callable[[], None], *, is_file: bool = True) -> None:
        """Start what ends by `_end`, when a slot of the destination is free."""
        self._busy, intent = True, self.mark.intent
        self._slot = self._capture.description.destination if intent is None else intent.destination

        def go() -> None:
            self._waits = None
            if is_file:
                self._rest.enter()
            step()

        self._waits = go
        self._tools.slots.take(self._slot, go)

    def _end(self, *, retry_ms: int = 0) -> None:
        self._busy = False
        self._rest.leave()
        self._tools.slots.give(self._slot)
        if self._stopped:
            waiting, self._on_idle = self._on_idle, []
            for callback in waiting:
                callback()
        else:
            # Not inside this call: a partition that is far behind must not keep the loop.
            self._next_look = self._deadlines.arm_in(retry_ms, self)

    def _offload(self, call: Callable[[], T], then: Callable[[T], None], making: CapturedFile | None = None) -> None:
        def done(result: Result[T]) -> None:
            try:
                value = result.value()
            except (OSError, HubweirError) as error:
                self._fail(error, making)
            else:
                then(value)

        self._env.offload(Lane.CAPTURE, call, done)

    def _fail(self, error: Exception, making: CapturedFile | None = None) -> None:
        """Wait, then do it again."""
        self._give_up(making, retry_ms=self._failure.failed(error))

    def _give_up(self, making: CapturedFile | None, *, retry_ms: int = 0) -> None:
        if making is None or making.archive is None:
            self._end(retry_ms=retry_ms)
        else:
            self._env.offload(Lane.CAPTURE, making.abandon, lambda _: self._end(retry_ms=retry_ms))
