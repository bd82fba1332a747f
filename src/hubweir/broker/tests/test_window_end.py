"""Where a full window ends: behind the event that fills it, one at least, and not among numbers that are not there."""

from __future__ import annotations

from dataclasses import replace

from hubweir.broker.tests.capture_world import CAPTURED, LOG_ID, CaptureWorld
from hubweir.broker.window_end import find_window_end
from hubweir.capture.capture import Capture
from hubweir.capture.capture_mark import CaptureMark
from hubweir.errors import LogOffline
from hubweir.messaging_store.log import Bounds, Durability, Pending, Refused, Run
from hubweir.namespace.capture_description import CaptureDescription


def capture_of(mark: CaptureMark, bounds: Bounds, size_bytes: int) -> Capture:
    description = CaptureDescription(enabled=True, size_limit_bytes=size_bytes)
    return Capture(
        mark, description, bounds, namespace="ns", hub="hub", partition_id="0", now_ms=0, monotonic_ms=0
    )  # fmt: skip


def ends_of(world: CaptureWorld, mark: CaptureMark, size_bytes: int) -> list[int | Refused | None]:
    assert world.broker is not None
    log = world.broker._partitions.get(LOG_ID).log
    found: list[int | Refused | None] = []
    find_window_end(log, capture_of(mark, log.bounds, size_bytes), mark.next_offset + size_bytes, found.append)
    world.run_s(1)
    return found


def test_it_ends_at_the_first_event_behind_its_size() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(20, size=60)
        world.run_s(1)
        assert world.broker is not None
        size = world.broker._partitions.get(LOG_ID).log.bounds.next_offset // 20
        mark = CaptureMark(b"", 0, 0, 0)
        assert ends_of(world, mark, 5 * size) == [5]
        assert ends_of(world, mark, 5 * size + 1) == [6]
        assert ends_of(world, mark, 1) == [1]


def test_a_size_that_is_set_while_the_log_is_asked_holds_for_the_next_window() -> None:
    """The mark's offset is that of the size that was asked for: with another end the next file would be too large."""
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(20, size=60)
        world.run_s(1)
        assert world.broker is not None
        log = world.broker._partitions.get(LOG_ID).log
        size = log.bounds.next_offset // 20
        capture = capture_of(CaptureMark(b"", 0, 0, 0), log.bounds, 15 * size)
        found: list[int | Refused | None] = []

        class Changing:
            """The log; who sets another size is a moment faster than its answer."""

            bounds = log.bounds
            find_offset = log.find_offset

            def read(self, index: int, *, max_bytes: int, on_done: object) -> object:
                capture.description = replace(capture.description, size_limit_bytes=5 * size)
                return log.read(index, max_bytes=max_bytes, on_done=on_done)  # type: ignore[arg-type]

        find_window_end(Changing(), capture, 15 * size, found.append)  # type: ignore[arg-type]
        world.run_s(1)
        assert found == [15]


def test_its_begin_moves_over_numbers_that_were_skipped() -> None:
    with CaptureWorld(description=None, durability=Durability.RELAXED) as world:
        world.open()
        world.send(2)
        world.run_s(1)
        world.restart()
        world.open()
        assert ends_of(world, CaptureMark(b"", 2, 100, 0), CAPTURED.size_limit_bytes) == [None]


def test_a_log_that_cannot_be_read_is_told() -> None:
    class Offline:
        bounds = Bounds(0, 10, 0, 1_000, 900, 0, 9)

        def read(self, index: int, *, max_bytes: int, on_done: object) -> Run | Pending:
            on_done(Refused(LogOffline("away")))  # type: ignore[operator]
            return object()  # type: ignore[return-value]

    found: list[int | Refused | None] = []
    capture = capture_of(CaptureMark(b"", 0, 0, 0), Offline.bounds, 10)
    find_window_end(Offline(), capture, 10, found.append)  # type: ignore[arg-type]
    [refused] = found
    assert isinstance(refused, Refused) and "away" in str(refused.error)
