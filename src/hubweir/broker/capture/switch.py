"""The captures of a broker's partitions: begun, changed and ended as their hubs say.

Enabling is answered when the mark is durable: what is accepted from then on is captured. Disabling removes the mark:
the open window is not written, what is in finished files stays there. A file that is being made then is given up.
Changes of one partition, its deletion too, are done one after the other.

After a crash: a partition whose hub is captured goes on from its mark. Without one, capture was enabled and never
answered: it begins now. A damaged mark says nothing: capture begins again with the oldest event that the log has, an
alarm says so, and events may be in two files: better than in none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hubweir.alarms import DAMAGED_FILE, Alarms
from hubweir.broker.capture.intent import release
from hubweir.broker.capture.places import CapturePlaces, CaptureTools
from hubweir.broker.capture.runner import CaptureRunner
from hubweir.broker.capture.slots import CaptureSlots
from hubweir.broker.commands.capture import CaptureState
from hubweir.broker.hosted_partitions import HostedPartition, LogStore, name_of
from hubweir.broker.turns import Turns
from hubweir.capture.capture import Capture, first_mark
from hubweir.capture.capture_mark import MARK_KEY, SEED_SIZE, CaptureMark, note_mark, unpack_mark
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.env import Env, Lane
from hubweir.errors import STORE_OFFLINE, CorruptStore, ServiceError
from hubweir.messaging_store.log import Refused
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
    """See the module's text. places None: this broker captures nothing, and refuses to."""

    def __init__(
        self, env: Env, store: LogStore, counters: Counters, places: CapturePlaces | None, alarms: Alarms
    ) -> None:
        self._env = env
        self._store = store
        self._counters = counters
        pace = CapturePace()
        self._tools = (
            None if places is None else CaptureTools(env, store.clock, counters, places, CaptureSlots(pace), pace)
        )
        self._running: dict[str, CaptureRunner] = {}  # by log id
        self._alarms = alarms
        self._turns = Turns()
        self._stopped = False

    def prepare(self, hosted: HostedPartition, description: CaptureDescription | None, now_ms: int) -> PreparedCapture:
        """What capture of a partition whose log was just opened goes on from, for `settle` and `begin`. In any thread.

        now_ms: the store's clock, which the loop alone may ask. Raises NewerFormat; ServiceError when this broker has
        no capture.
        """
        has_mark = MARK_KEY in hosted.log.notes
        if description is None or not description.enabled:
            # Disabled, and ended before the mark was gone: enabled again, capture must not go on from it.
            return PreparedCapture(None, None, None, is_noted=not has_mark)
        self._need_tools()
        mark, damage = self._read_mark(hosted, now_ms)
        return PreparedCapture(description, mark, damage, is_noted=has_mark and damage is None)

    def settle(
        self, hosted: HostedPartition, prepared: PreparedCapture, on_done: Callable[[Refused | None], None]
    ) -> None:
        """Make durable what was prepared; on_done, maybe at once, when `begin` may follow."""
        if prepared.is_noted:
            on_done(None)
        else:
            note_mark(hosted.log, prepared.mark, now_ms=self._store.clock.stamp_ms(), on_done=on_done)

    def begin(self, hosted: HostedPartition, prepared: PreparedCapture) -> None:
        """Go on with capture, or begin it, of a partition that is hosted now, if it is to be captured."""
        if prepared.damage is not None:
            self._alarms.begin(DAMAGED_FILE, _name(hosted), prepared.damage)
        if prepared.description is not None and prepared.mark is not None:
            self._run(self._need_tools(), hosted, prepared.description, prepared.mark)

    def change(self, hosted: HostedPartition, description: CaptureDescription | None, on_done: OnDone) -> None:
        """Do as the hub says now; on_done when that is durable. ServiceError when this broker has no capture."""
        if _is_on(description):
            self._need_tools()

        def begin(ended: Callable[[], None]) -> None:
            def done(refused: ServiceError | None) -> None:
                on_done(refused)
                ended()

            if description is None or not description.enabled:
                self._disable(hosted, done)
            elif hosted.capture is not None:
                hosted.capture.change(description)
                done(None)
            else:
                self._enable(hosted, description, done)

        self._turns.take(hosted.log.log_id, begin)

    def end(self, hosted: HostedPartition | None, on_idle: Callable[[], None]) -> None:
        """The partition is removed: nothing of it is used any more when on_idle is called. Its mark goes with it."""
        if hosted is None:
            on_idle()
            return

        def begin(ended: Callable[[], None]) -> None:
            capture = self._running.pop(hosted.log.log_id, None)

            def idle() -> None:
                self._alarms.end_all(_name(hosted))
                on_idle()
                ended()

            if capture is None:
                idle()
            else:
                capture.stop(idle)

        self._turns.take(hosted.log.log_id, begin)

    def stop(self, on_idle: Callable[[], None]) -> None:
        """Begin nothing any more; on_idle when no call is under way. What is open goes on at the next start."""
        self._stopped = True
        left = 1

        def idle() -> None:
            nonlocal left
            left -= 1
            if not left:
                on_idle()

        def behind(ended: Callable[[], None]) -> None:
            idle()
            ended()

        for capture in list(self._running.values()):
            left += 1
            capture.stop(idle)
        for log_id in self._turns.busy:
            left += 1
            self._turns.take(log_id, behind)
        idle()

    def state(self, hosted: HostedPartition) -> CaptureState:
        """How far capture of a partition is."""
        capture = hosted.capture
        if capture is None:
            return CaptureState(hosted.log.log_id, False, -1, 0, 0, 0, 0, "", "")
        mark = capture.mark
        return CaptureState(
            log_id=hosted.log.log_id,
            is_running=True,
            next_sequence_number=mark.next_index,
            behind_events=capture.behind_events,
            behind_bytes=capture.behind_bytes,
            files=mark.files,
            uncaptured_events=mark.uncaptured,
            last_file=mark.last_file,
            failure=capture.failure or "",
        )

    def count(self) -> None:
        """Set the gauges: how far all of them are behind."""
        if self._running:
            running = self._running.values()
            self._counters.set("capture.partitions", len(running))
            self._counters.set("capture.behind_events", sum(capture.behind_events for capture in running))
            self._counters.set("capture.behind_bytes", sum(capture.behind_bytes for capture in running))
            self._counters.set("capture.failing", sum(capture.failure is not None for capture in running))

    # Steps

    def _need_tools(self) -> CaptureTools:
        if self._tools is None:
            raise ServiceError(STORE_OFFLINE, "This broker has no place for captured files: it captures nothing.")
        return self._tools

    def _new_mark(self, hosted: HostedPartition, now_ms: int) -> CaptureMark:
        return first_mark(self._env.random_bytes(SEED_SIZE), hosted.log.bounds, now_ms)

    def _read_mark(self, hosted: HostedPartition, now_ms: int) -> tuple[CaptureMark, str | None]:
        """The mark to go on from, a new one where there is none; and what to tell when it was damaged."""
        log, mark = hosted.log, self._new_mark(hosted, now_ms)
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

    def _enable(self, hosted: HostedPartition, description: CaptureDescription, on_done: OnDone) -> None:
        tools = self._need_tools()
        now_ms = self._store.clock.stamp_ms()
        mark = self._new_mark(hosted, now_ms)

        def noted(refused: Refused | None) -> None:
            if refused is not None:
                on_done(ServiceError(STORE_OFFLINE, f"Capture cannot be enabled now: {refused.error}. Try again."))
                return
            if not self._stopped:  # else it begins at the next start, from its mark
                self._run(tools, hosted, description, mark)
            on_done(None)

        note_mark(hosted.log, mark, now_ms=now_ms, on_done=noted)

    def _disable(self, hosted: HostedPartition, on_done: OnDone) -> None:
        capture, hosted.capture = hosted.capture, None
        if capture is None:
            on_done(None)
            return
        self._running.pop(hosted.log.log_id, None)
        env, tools, intent = self._env, self._need_tools(), capture.mark.intent

        def ended(refused: Refused | None) -> None:
            self._alarms.end_all(_name(hosted))
            if refused is None:
                on_done(None)
            else:
                text = f"Capture cannot be disabled for good now: {refused.error}. Try again."
                on_done(ServiceError(STORE_OFFLINE, text))

        def noted(refused: Refused | None) -> None:
            if refused is None and intent is not None:
                env.offload(Lane.CAPTURE, lambda: release(tools.places, intent), lambda _: ended(None))
            else:
                ended(refused)

        capture.stop(lambda: note_mark(hosted.log, None, now_ms=self._store.clock.stamp_ms(), on_done=noted))

    def _run(
        self,
        tools: CaptureTools,
        hosted: HostedPartition,
        description: CaptureDescription,
        mark: CaptureMark,
    ) -> None:
        partition, env = hosted.partition, self._env
        capture = Capture(
            mark, description, hosted.log.bounds,
            namespace=hosted.namespace, hub=partition.hub, partition_id=partition.partition_id,
            now_ms=tools.clock.stamp_ms(), monotonic_ms=env.monotonic_ms(),
        )  # fmt: skip
        hosted.capture = CaptureRunner(tools, hosted.log, capture, _name(hosted), self._alarms)
        self._running[hosted.log.log_id] = hosted.capture
        hosted.capture.start()


def _is_on(description: CaptureDescription | None) -> bool:
    return description is not None and description.enabled


def _name(hosted: HostedPartition) -> str:
    return f"capture of {name_of(hosted)}"
