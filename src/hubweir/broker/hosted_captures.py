"""The captures of a broker's partitions: begun, changed and ended as their hubs say.

Enabling is answered when the mark is durable: what is accepted from then on is captured. Disabling removes the mark:
the open window is not written, what is in finished files stays there. A file that is being made then is given up.
Changes of one partition, its deletion too, are done one after the other.

After a crash: a partition whose hub is captured goes on from its mark. Without one, capture was enabled and never
answered: it begins now. A damaged mark says nothing: capture begins again with the oldest event that the log has, an
alarm says so, and events may be in two files: better than in none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hubweir.broker.capture_intent import release
from hubweir.broker.capture_places import CapturePlaces, CaptureWorld
from hubweir.broker.capture_slots import CaptureSlots
from hubweir.broker.commands import CaptureState
from hubweir.broker.hosted_capture import HostedCapture
from hubweir.broker.hosted_partitions import HostedPartition, LogStore
from hubweir.broker.turns import Turns
from hubweir.capture.capture import Capture, first_mark
from hubweir.capture.capture_mark import MARK_NAME, SEED_SIZE, CaptureMark, save_mark, unpack_mark
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters
from hubweir.env import Env, Result
from hubweir.errors import STORE_OFFLINE, CorruptStore, ServiceError
from hubweir.messaging_store.layout import join
from hubweir.messaging_store.whole_file import read_whole, unseal
from hubweir.namespace.capture_description import CaptureDescription

logger = logging.getLogger(__name__)

OnDone = Callable[[ServiceError | None], None]


class HostedCaptures:
    """See the module's text. places None: this broker captures nothing, and refuses to."""

    def __init__(self, env: Env, store: LogStore, counters: Counters, places: CapturePlaces | None) -> None:
        self._env = env
        self._store = store
        self._counters = counters
        pace = CapturePace()
        self._world = None if places is None else CaptureWorld(env, counters, places, CaptureSlots(pace), pace)
        self._running: dict[str, HostedCapture] = {}  # by log id
        self._alarms: list[str] = []
        self._turns = Turns()
        self._stopped = False

    @property
    def alarms(self) -> list[str]:
        """What the operator must know."""
        found = [capture.alarm for capture in self._running.values()]
        return self._alarms + [alarm for alarm in found if alarm is not None]

    def host(self, hosted: HostedPartition, description: CaptureDescription | None) -> None:
        """Go on with capture, or begin it, for a partition that was just opened. Blocking, as opening is.

        Raises OSError, NewerFormat; ServiceError when this broker has no capture.
        """
        if hosted.capture is not None or self._world is None and not _is_on(description):
            return
        world, folder = self._need_world(), self._store.log_folder(hosted.log.log_id)
        files = self._env.files
        if description is None or not description.enabled:
            # Disabled, and ended before the mark was gone: enabled again, capture must not go on from it.
            if files.exists(join(folder, MARK_NAME)):
                files.remove(join(folder, MARK_NAME))
                files.sync_folder(folder)
            return
        mark = self._read_mark(hosted, folder)
        if mark is None:
            mark = self._new_mark(hosted)
            save_mark(files, folder, mark)
        self._run(world, hosted, folder, description, mark)

    def change(self, hosted: HostedPartition, description: CaptureDescription | None, on_done: OnDone) -> None:
        """Do as the hub says now; on_done when that is durable. ServiceError when this broker has no capture."""
        if _is_on(description):
            self._need_world()

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

    def _need_world(self) -> CaptureWorld:
        if self._world is None:
            raise ServiceError(STORE_OFFLINE, "This broker has no place for captured files: it captures nothing.")
        return self._world

    def _new_mark(self, hosted: HostedPartition) -> CaptureMark:
        return first_mark(self._env.random_bytes(SEED_SIZE), hosted.log.bounds, self._env.now_ms())

    def _read_mark(self, hosted: HostedPartition, folder: str) -> CaptureMark | None:
        """The mark; None when there is none. Blocking."""
        data = read_whole(self._env.files, join(folder, MARK_NAME))
        if data is None:
            return None
        try:
            body = unseal(data)
            if body is None:
                raise CorruptStore("its checksum does not fit")
            return unpack_mark(body)
        except CorruptStore as error:
            bounds, mark = hosted.log.bounds, self._new_mark(hosted)
            text = (
                f"the mark of capture of {_name(hosted)} is damaged ({error}): capture begins again with event "
                f"{bounds.first_index}; events may be in two files"
            )
            logger.error("%s", text)
            self._alarms.append(text)
            return CaptureMark(mark.seed, bounds.first_index, bounds.first_offset, mark.window_start_ms)

    def _enable(self, hosted: HostedPartition, description: CaptureDescription, on_done: OnDone) -> None:
        world, folder = self._need_world(), self._store.log_folder(hosted.log.log_id)
        mark = self._new_mark(hosted)
        env = self._env

        def save() -> None:
            env.fault("capture.enabling")
            save_mark(env.files, folder, mark)

        def saved(result: Result[None]) -> None:
            try:
                result.value()
            except OSError as error:
                on_done(ServiceError(STORE_OFFLINE, f"Capture cannot be enabled now: {error}. Try again."))
            else:
                if not self._stopped:  # else it begins at the next start, from its mark
                    self._run(world, hosted, folder, description, mark)
                on_done(None)

        env.offload(save, saved)

    def _disable(self, hosted: HostedPartition, on_done: OnDone) -> None:
        capture, hosted.capture = hosted.capture, None
        if capture is None:
            on_done(None)
            return
        self._running.pop(hosted.log.log_id, None)
        path, env, world = join(self._store.log_folder(hosted.log.log_id), MARK_NAME), self._env, self._need_world()

        def remove() -> None:
            if env.files.exists(path):
                env.files.remove(path)
                env.files.sync_folder(path.rpartition("/")[0])
            if capture.mark.intent is not None:
                release(world.places, capture.mark.intent)

        def removed(result: Result[None]) -> None:
            try:
                result.value()
            except OSError as error:
                on_done(ServiceError(STORE_OFFLINE, f"Capture cannot be disabled for good now: {error}. Try again."))
            else:
                on_done(None)

        capture.stop(lambda: env.offload(remove, removed))

    def _run(
        self,
        world: CaptureWorld,
        hosted: HostedPartition,
        folder: str,
        description: CaptureDescription,
        mark: CaptureMark,
    ) -> None:
        partition, env = hosted.partition, self._env
        capture = Capture(
            mark, description, hosted.log.bounds,
            namespace=hosted.namespace, hub=partition.hub, partition_id=partition.partition_id,
            now_ms=env.now_ms(), monotonic_ms=env.monotonic_ms(),
        )  # fmt: skip
        hosted.capture = HostedCapture(world, hosted.log, folder, capture, _name(hosted))
        self._running[hosted.log.log_id] = hosted.capture
        hosted.capture.start()


def _is_on(description: CaptureDescription | None) -> bool:
    return description is not None and description.enabled


def _name(hosted: HostedPartition) -> str:
    return f"{hosted.partition.hub}/{hosted.partition.partition_id}"
