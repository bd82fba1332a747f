"""Where a full window ends: behind the event that fills it, one at least, and not among numbers that are not there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hubweir.broker.capture.tests.capture_world import CAPTURED, LOG_ID, CaptureWorld, envelope
from hubweir.broker.capture.window_end import find_window_end
from hubweir.capture.capture import Capture
from hubweir.capture.capture_mark import CaptureMark
from hubweir.errors import CorruptStore, LogOffline
from hubweir.messaging_store.completion import LogEnd, complete_run
from hubweir.messaging_store.log import Bounds, Durability, Pending, Refused, Run
from hubweir.namespace.capture_description import CaptureDescription


def capture_of(mark: CaptureMark, bounds: Bounds, size_bytes: int) -> Capture:
    description = CaptureDescription(enabled=True, size_limit_bytes=size_bytes)
    return Capture(
        mark, description, bounds, namespace="ns", hub="hub", partition_id="0", now_ms=0, monotonic_ms=0
    )  # fmt: skip


def ends_of(
    world: CaptureWorld, mark: CaptureMark, size_bytes: int, capture: Capture | None = None
) -> list[int | Refused | None]:
    assert world.broker is not None
    log = world.broker._residents.by_log_id[LOG_ID].log
    found: list[int | Refused | None] = []
    capture = capture or capture_of(mark, log.bounds, size_bytes)
    find_window_end(log, capture, mark.next_offset + size_bytes, found.append)
    world.run_s(1)
    return found


def test_it_ends_at_the_first_event_behind_its_size() -> None:
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(20, size=60)
        world.run_s(1)
        assert world.broker is not None
        size = world.broker._residents.by_log_id[LOG_ID].log.bounds.next_offset // 20
        mark = CaptureMark(b"", 0, 0, 0)
        assert ends_of(world, mark, 5 * size) == [5]
        assert ends_of(world, mark, 5 * size + 1) == [6]
        assert ends_of(world, mark, 1) == [1]
        inside = CaptureMark(b"", 5, 5 * size, 0)  # of the batch: nothing is missing before it
        assert ends_of(world, inside, 5 * size) == [10]


def test_a_size_that_is_set_while_the_log_is_asked_holds_for_the_next_window() -> None:
    """The mark's offset is that of the size that was asked for: with another end the next file would be too large."""
    with CaptureWorld(description=None) as world:
        world.open()
        world.send(20, size=60)
        world.run_s(1)
        assert world.broker is not None
        log = world.broker._residents.by_log_id[LOG_ID].log
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
        assert world.broker is not None
        bounds, mark = world.broker._residents.by_log_id[LOG_ID].log.bounds, CaptureMark(b"", 2, 100, 0)
        assert bounds.next_index > 2
        for sent in (0, 3):  # behind what was skipped: nothing yet, and events
            world.send(sent) if sent else None
            world.run_s(1)
            capture = capture_of(mark, bounds, CAPTURED.size_limit_bytes)
            assert ends_of(world, mark, CAPTURED.size_limit_bytes, capture) == [None]
            # Else the window would be looked at for ever, and never end.
            assert (capture.mark.next_index, capture.mark.next_offset) == (bounds.next_index, bounds.next_offset)


class Answering:
    """A log of ten events that gives these answers: to the read at the begin, and to the search for its end."""

    bounds = Bounds(0, 10, 0, 1_000, 900, 0, 9)

    def __init__(self, read: Run | Refused, found: int | Refused) -> None:
        self._read = read
        self._found = found

    def read(self, index: int, *, max_bytes: int, on_done: Callable[[Run | Refused], None]) -> Run | Pending:
        return self._read if isinstance(self._read, Run) else _later(on_done, self._read)

    def find_offset(self, offset: int, on_done: Callable[[int | Refused], None]) -> int | Pending:
        return self._found if isinstance(self._found, int) else _later(on_done, self._found)


def _later(on_done: Callable[[Any], None], answer: Refused) -> Pending:
    on_done(answer)
    return object()  # type: ignore[return-value]


def end_of(log: Answering) -> tuple[list[int | Refused | None], Capture]:
    """Of a window of 10 bytes that begins at event 4; and its capture."""
    found: list[int | Refused | None] = []
    capture = capture_of(CaptureMark(b"", 4, 400, 0), log.bounds, 10)
    find_window_end(log, capture, 410, found.append)  # type: ignore[arg-type]
    return found, capture


def test_a_log_that_cannot_be_read_is_told() -> None:
    [refused], _ = end_of(Answering(Refused(LogOffline("away")), 5))
    assert isinstance(refused, Refused) and "away" in str(refused.error)


def test_a_window_has_one_event_at_least_wherever_the_log_says_that_it_ends() -> None:
    """A search beside damage may come out at the window's own begin, and a window without end stands still."""

    for resume_index in (5, None):
        log = Answering(Refused(CorruptStore("damaged", resume_index=resume_index)), 4)
        assert end_of(log)[0] == [5]


def test_a_window_that_begins_inside_a_batch_has_one_event_at_least() -> None:
    run = envelope([b"event"] * 10)
    complete_run(run, LogEnd(), nonce=1, enqueued_time_ms=1, durable_upto=0, writer_epoch=1)
    assert end_of(Answering(Run(bytes(run), 4, 10), 4))[0] == [5]


def test_an_empty_answer_that_ends_before_the_logs_end_moves_nothing() -> None:
    """To begin at the log's end then would pass over events that are in no file."""
    found, capture = end_of(Answering(Run(b"", 4, 4), 6))
    assert found == [6] and capture.mark.next_index == 4


def test_a_search_for_the_end_that_fails_is_told() -> None:
    """Untold, the window would stay open for ever and take a place among those that make files."""
    [refused], _ = end_of(Answering(Run(b"", 4, 4), Refused(LogOffline("away"))))
    assert isinstance(refused, Refused) and "away" in str(refused.error)


def test_a_window_that_is_full_inside_damage_ends_behind_it_and_not_at_each_lost_event() -> None:
    with CaptureWorld(description=replace(CAPTURED, interval_s=900, size_limit_bytes=10**6)) as world:
        world.open()
        for _ in range(30):
            world.send(10, size=60)
            world.run_s(0.2)
        folder = f"store-0/logs/{LOG_ID}"
        for name in sorted(name for name in world.files.list(folder) if name.endswith(".log"))[1:5]:
            data = world.files.bytes_of(f"{folder}/{name}")
            for at in range(300, len(data), 200):
                data[at] ^= 1
        world.change(replace(CAPTURED, interval_s=900, size_limit_bytes=2_000))
        world.run_s(901)
        state = world.state()
        numbers = [record["SequenceNumber"] for file in world.records() for record in file]
        assert state.uncaptured_events >= 50 and len(numbers) + state.uncaptured_events == 300
        assert numbers == sorted(set(numbers))
        assert len(world.archives()) < 40  # a window of 2,000 bytes holds some twenty events
