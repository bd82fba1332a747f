"""Begins, changes and ends the capture of one partition, as its hub says.

Enabling is answered when the mark is durable: what is accepted from then on is captured. Disabling removes the mark:
the open window is not written, what is in finished files stays there. A file that is being made then is given up.
Changes, and the partition's deletion, are done one after the other.

After a crash: a partition whose hub is captured goes on from its mark. Without one, capture was enabled and never
answered: it begins now. A damaged mark says nothing: capture begins again with the oldest event that the log has, an
alarm says so, and events may be in two files: better than in none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.alarms import DAMAGED_FILE
from hubweir.broker.capture.captures import Captures
from hubweir.broker.capture.intent import release_name
from hubweir.broker.capture.places import CaptureTools
from hubweir.broker.capture.runner import CaptureRunner
from hubweir.broker.commands.capture import CaptureState
from hubweir.broker.turns import ChangeQueue
from hubweir.capture.capture import Capture, first_mark
from hubweir.capture.capture_mark import MARK_KEY, SEED_SIZE, CaptureMark, note_mark, unpack_mark
from hubweir.env import Lane
from hubweir.errors import STORE_OFFLINE, CorruptStore, ServiceError
from hubweir.event_hub.partition import Partition
from hubweir.messaging_store.log import Refused
from hubweir.metrics import CAPTURE_BACKLOG, CAPTURE_BACKLOG_EVENTS, CAPTURED_BYTES, CAPTURED_MESSAGES, Samples
from hubweir.namespace.capture_description import CaptureDescription

OnDone = Callable[[ServiceError | None], None]


@dataclass(frozen=True, slots=True)
class PreparedCapture:
    """What capture of a partition goes on from; mark None: nothing is captured. damage: of its mark, for people.

    is_noted: the log has this mark, or none.
    """

    description: CaptureDescription | None
    mark: CaptureMark | None
    damage: str | None
    is_noted: bool


class CaptureSwitch:
    """See the module's text. runner: the capture that runs now; None while the partition is not captured."""

    def __init__(self, captures: Captures, partition: Partition, *, namespace: str, name: str) -> None:
        """name: of the partition, for people."""
        self._captures = captures
        self._partition = partition
        self._log = partition.log
        self._namespace = namespace
        self._name = f"capture of {name}"
        self.runner: CaptureRunner | None = None
        self._changes = ChangeQueue()
        self._is_stopped = False

    # The start of a partition

    def prepare(self, description: CaptureDescription | None) -> PreparedCapture:
        """What capture goes on from, for `settle` and `begin`. Its log was just opened.

        Raises NewerFormat; ServiceError when this broker has no capture.
        """
        has_mark = MARK_KEY in self._log.notes
        if not _is_on(description):
            # Disabled, and ended before the mark was gone: enabled again, capture must not go on from it.
            return PreparedCapture(None, None, None, is_noted=not has_mark)
        self._captures.need_tools()
        mark, damage = self._read_mark(self._captures.clock.stamp_ms())
        return PreparedCapture(description, mark, damage, is_noted=has_mark and damage is None)

    def settle(self, prepared: PreparedCapture, on_done: Callable[[Refused | None], None]) -> None:
        """Make durable what was prepared; on_done, maybe at once, when `begin` may follow."""
        if prepared.is_noted:
            on_done(None)
        else:
            note_mark(self._log, prepared.mark, now_ms=self._captures.clock.stamp_ms(), on_done=on_done)

    def begin(self, prepared: PreparedCapture) -> None:
        """Go on with capture, or begin it, if the partition, which is hosted now, is to be captured."""
        if prepared.damage is not None:
            self._captures.alarms.begin(DAMAGED_FILE, self._name, prepared.damage)
        if prepared.description is not None and prepared.mark is not None:
            self._run(self._captures.need_tools(), prepared.description, prepared.mark)

    # What is asked of it

    def change(self, description: CaptureDescription | None, on_done: OnDone) -> None:
        """Do as the hub says now; on_done when that is durable. ServiceError when this broker has no capture."""
        if _is_on(description):
            self._captures.need_tools()

        def begin(ended: Callable[[], None]) -> None:
            def done(refused: ServiceError | None) -> None:
                on_done(refused)
                ended()

            if description is None or not description.enabled:
                self._disable(done)
            elif self.runner is not None:
                self.runner.change(description)
                done(None)
            else:
                self._enable(description, done)

        self._changes.submit(begin)

    def state(self) -> CaptureState:
        """How far capture is."""
        runner = self.runner
        if runner is None:
            return CaptureState(self._log.log_id, False, -1, 0, 0, 0, 0, "", "")
        mark = runner.mark
        return CaptureState(
            log_id=self._log.log_id,
            is_running=True,
            next_sequence_number=mark.next_index,
            behind_events=runner.behind_events,
            behind_bytes=runner.behind_bytes,
            files=mark.files,
            uncaptured_events=mark.uncaptured,
            last_file=mark.last_file,
            failure=runner.failure or "",
        )

    def measure(self, samples: Samples, labels: tuple[str, ...]) -> None:
        """Say how far capture is, where it runs. labels: of the hub."""
        runner = self.runner
        if runner is not None:
            samples[CAPTURE_BACKLOG][labels] += runner.behind_bytes
            samples[CAPTURE_BACKLOG_EVENTS][labels] += runner.behind_events
            samples[CAPTURED_MESSAGES][labels] += runner.captured_events
            samples[CAPTURED_BYTES][labels] += runner.captured_bytes

    def end(self, on_idle: Callable[[], None]) -> None:
        """The partition is removed: nothing of it is used any more when on_idle is called. Its mark goes with it."""

        def begin(ended: Callable[[], None]) -> None:
            def idle() -> None:
                self._captures.alarms.end_all(self._name)
                on_idle()
                ended()

            runner = self._take_runner()
            if runner is None:
                idle()
            else:
                runner.stop(idle)

        self._changes.submit(begin)

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Begin nothing any more; on_idle when no call is under way. What is open goes on at the next start."""
        self._is_stopped = True

        def begin(ended: Callable[[], None]) -> None:
            on_idle()
            ended()

        if self.runner is None:
            self._changes.submit(begin)
        else:
            self.runner.stop(lambda: self._changes.submit(begin))

    # Steps

    def _read_mark(self, now_ms: int) -> tuple[CaptureMark, str | None]:
        """The mark to go on from, a new one where there is none; and what to tell when it was damaged."""
        log, mark = self._log, self._new_mark(now_ms)
        note, damage = log.notes.get(MARK_KEY), log.notes_damage
        if note is None and damage is None:
            return mark, None
        try:
            if note is None:
                raise CorruptStore(damage or "")
            return unpack_mark(note.body), None
        except CorruptStore as error:
            bounds = log.bounds
            text = (
                f"its mark is damaged ({error}): capture begins again with event {bounds.first_index}; events may be "
                "in two files"
            )
            return CaptureMark(mark.seed, bounds.first_index, bounds.first_offset, mark.window_start_ms), text

    def _new_mark(self, now_ms: int) -> CaptureMark:
        return first_mark(self._captures.env.random_bytes(SEED_SIZE), self._log.bounds, now_ms)

    def _enable(self, description: CaptureDescription, on_done: OnDone) -> None:
        tools = self._captures.need_tools()
        now_ms = tools.clock.stamp_ms()
        mark = self._new_mark(now_ms)

        def noted(refused: Refused | None) -> None:
            if refused is not None:
                on_done(ServiceError(STORE_OFFLINE, f"Capture cannot be enabled now: {refused.error}. Try again."))
                return
            if not self._is_stopped:  # else it begins at the next start, from its mark
                self._run(tools, description, mark)
            on_done(None)

        note_mark(self._log, mark, now_ms=now_ms, on_done=noted)

    def _disable(self, on_done: OnDone) -> None:
        runner = self._take_runner()
        if runner is None:
            on_done(None)
            return
        tools, intent = self._captures.need_tools(), runner.mark.intent

        def ended(refused: Refused | None) -> None:
            tools.alarms.end_all(self._name)
            if refused is None:
                on_done(None)
            else:
                text = f"Capture cannot be disabled for good now: {refused.error}. Try again."
                on_done(ServiceError(STORE_OFFLINE, text))

        def noted(refused: Refused | None) -> None:
            if refused is None and intent is not None:
                tools.env.offload(Lane.CAPTURE, lambda: release_name(tools.places, intent), lambda _: ended(None))
            else:
                ended(refused)

        runner.stop(lambda: note_mark(self._log, None, now_ms=tools.clock.stamp_ms(), on_done=noted))

    def _run(self, tools: CaptureTools, description: CaptureDescription, mark: CaptureMark) -> None:
        partition = self._partition
        capture = Capture(
            mark, description, self._log.bounds,
            namespace=self._namespace, hub=partition.hub, partition_id=partition.partition_id,
            now_ms=tools.clock.stamp_ms(), monotonic_ms=tools.env.monotonic_ms(),
        )  # fmt: skip
        runner = self.runner = CaptureRunner(tools, self._log, capture, self._name)
        self._captures.running[runner] = None
        runner.start()

    def _take_runner(self) -> CaptureRunner | None:
        """The capture that ran, which nobody sees running any more."""
        runner, self.runner = self.runner, None
        if runner is not None:
            del self._captures.running[runner]
        return runner


def _is_on(description: CaptureDescription | None) -> bool:
    return description is not None and description.enabled
