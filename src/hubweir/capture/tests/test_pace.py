"""The pace of capture: full speed while it keeps up, a share when it cannot, and back."""

from __future__ import annotations

import pytest

from hubweir.capture.pace import LOOK_MS, PART, REST_LIMIT_MS, SHARE_PERCENT, CapturePace, is_near

MB = 1_000_000
SECOND = 1_000


class Machine:
    """Publishers and captures in virtual time: bytes a second that come in, and that one thread of capture takes."""

    def __init__(self, *, comes: int, takes: int, files: int = 1) -> None:
        self.comes, self.takes = comes, takes
        self.now_ms, self.appended = 1_000_000, 0
        self.captured = self.worked_ms = 0
        self.pace = CapturePace()
        for _ in range(files):
            self.pace.enter(self.now_ms, self.appended)

    def run(self, seconds: float) -> float:
        """Share of the time that all captures together worked, each thread counted; pieces of 1 MB, in turn."""
        end_ms, begun_ms, before = self.now_ms + int(seconds * SECOND), self.now_ms, self.worked_ms
        free_ms = [self.now_ms] * self.pace.at_work
        while (start := min(free_ms)) < end_ms:
            work_ms = MB * SECOND // self.takes
            self._pass_until(max(self.now_ms, start + work_ms))
            self.captured += MB
            self.worked_ms += work_ms
            rest_ms = self.pace.worked(MB, work_ms, self.now_ms, self.appended)
            free_ms[free_ms.index(start)] = self.now_ms + rest_ms
        return (self.worked_ms - before) / (self.now_ms - begun_ms)

    def _pass_until(self, now_ms: int) -> None:
        self.appended += (now_ms - self.now_ms) * self.comes // SECOND
        self.now_ms = now_ms


def test_capture_that_keeps_up_does_not_rest() -> None:
    machine = Machine(comes=90 * MB, takes=100 * MB)
    machine.run(2 * LOOK_MS / SECOND)  # until what comes in is known
    assert machine.run(10) == pytest.approx(1)
    assert not machine.pace.gives_way


@pytest.mark.parametrize("files", [1, 4])
def test_captures_that_cannot_keep_up_take_their_share_together(files: int) -> None:
    machine = Machine(comes=600 * MB, takes=500 * MB, files=files)
    machine.comes *= files  # so that even all threads together could not
    machine.run(2)
    assert machine.pace.gives_way
    wanted = max(SHARE_PERCENT / 100, machine.comes / PART / machine.takes)
    assert machine.run(10) == pytest.approx(wanted, rel=0.15)


def test_a_slow_machine_captures_its_part_of_what_comes_in() -> None:
    machine = Machine(comes=100 * MB, takes=75 * MB)
    machine.run(2)
    before = machine.captured, machine.appended
    machine.run(20)
    part = (machine.captured - before[0]) / (machine.appended - before[1])
    assert part == pytest.approx(1 / PART, rel=0.15)


def test_capture_goes_at_full_speed_again_when_less_comes_in() -> None:
    machine = Machine(comes=240 * MB, takes=200 * MB)
    assert machine.run(5) < 0.7
    machine.comes = 150 * MB
    machine.run(1)
    assert not machine.pace.gives_way
    assert machine.run(5) == pytest.approx(1)


def test_what_came_while_nobody_captured_is_no_reason_to_rest() -> None:
    pace = CapturePace()
    pace.enter(0, 0)
    pace.leave(0, 0)
    pace.enter(3_600_000, 100_000 * MB)
    assert pace.worked(MB, LOOK_MS, 3_600_000 + LOOK_MS, 100_000 * MB + MB // 2) == 0
    assert not pace.gives_way


def test_many_short_files_one_after_the_other_end_the_careful_beginning() -> None:
    pace = CapturePace()
    files = 3 * LOOK_MS // 10
    for number in range(files):
        now_ms = 60_000 * number
        pace.enter(now_ms, MB * number)
        pace.worked(MB // 100, 10, now_ms + 10, MB * number)
        pace.leave(now_ms + 10, MB * number)
    assert not pace.gives_way


def test_files_without_events_alone_end_the_careful_beginning_as_well() -> None:
    """Beside them another hub, which is not captured, takes in as much as it likes."""
    pace = CapturePace()
    for number in range(LOOK_MS // 10):
        assert pace.gives_way
        now_ms = 60_000 * number
        pace.enter(now_ms, 9 * MB * number)
        pace.enter(now_ms + 2, 9 * MB * number)
        pace.leave(now_ms + 8, 9 * MB * number)
        pace.leave(now_ms + 10, 9 * MB * number + MB)
    assert not pace.gives_way


def test_files_without_events_between_others_do_not_end_the_giving_way() -> None:
    pace = CapturePace()
    for number in range(100):
        now_ms = number * LOOK_MS
        pace.enter(now_ms, 50 * MB * number)
        pace.worked(MB, LOOK_MS // 2, now_ms + LOOK_MS // 2, 50 * MB * number + 25 * MB)
        pace.leave(now_ms + LOOK_MS - 10, 50 * MB * number + 49 * MB)
        assert pace.gives_way
        pace.enter(now_ms + LOOK_MS - 10, 50 * MB * number + 49 * MB)
        pace.leave(now_ms + LOOK_MS, 50 * MB * number + 50 * MB)
        assert pace.gives_way


def test_no_rest_is_longer_than_a_second() -> None:
    pace = CapturePace()
    for _ in range(4):
        pace.enter(0, 0)
    assert pace.worked(MB, SECOND, SECOND, 3 * MB) == REST_LIMIT_MS
    assert pace.gives_way


@pytest.mark.parametrize("work_ms", [1, LOOK_MS])
@pytest.mark.parametrize("more", [0, 1])
def test_a_look_lasts_its_time_and_one_byte_more_than_could_be_captured_is_given_way_to(
    work_ms: int, more: int
) -> None:
    pace = CapturePace()
    pace.enter(1_000, 500)
    pace.worked(MB, work_ms, 1_000 + LOOK_MS - 1, 500)
    assert pace.gives_way, "it is not known yet what comes in"
    could = MB * LOOK_MS // work_ms
    pace.worked(0, 0, 1_000 + LOOK_MS, 500 + could + more)
    assert pace.gives_way is bool(more)


def test_a_rest_is_what_the_time_or_the_bytes_ask_for_whichever_is_less() -> None:
    pace = CapturePace()
    pace.enter(0, 0)
    pace.worked(0, LOOK_MS, LOOK_MS, LOOK_MS * 4)  # 4,000 bytes a second come in
    assert pace.gives_way
    now_ms = LOOK_MS + 1
    assert pace.worked(1_000, 40, now_ms, 0) == 40 * 100 // SHARE_PERCENT - 40
    assert pace.worked(20, 8, now_ms, 0) == PART * 20 * SECOND // 4_000 - 8
    assert pace.worked(0, 40, now_ms, 0) == 0


def test_beside_publishers_that_send_next_to_nothing_the_bytes_still_ask_for_a_rest() -> None:
    for came, rate in ((1, 1), (2, 2)):
        pace = CapturePace()
        pace.enter(0, 0)
        pace.worked(0, SECOND, SECOND, came)
        assert pace.gives_way
        assert pace.worked(1, 100, SECOND + 1, came) == min(100 * 100 // SHARE_PERCENT, PART * SECOND // rate) - 100
        assert pace.worked(1, 1_000, SECOND + 1, came) == PART * SECOND // rate - 1_000


def test_files_without_events_behind_one_with_events_are_counted_from_it_on() -> None:
    pace = CapturePace()
    pace.enter(0, 0)
    pace.worked(MB, 1, 1, 0)
    pace.leave(1, 100 * MB)
    assert pace.gives_way
    pace.enter(10, 100 * MB)
    pace.leave(10 + LOOK_MS - 1, 200 * MB)
    assert pace.gives_way
    pace.enter(1_000, 300 * MB)
    pace.leave(1_001, 400 * MB)
    assert not pace.gives_way
    pace.enter(1_002, 400 * MB)
    assert pace.worked(MB, 1, 1_003, 400 * MB) == 0, "what came before says nothing any more"
    assert not pace.gives_way


def test_the_first_files_without_events_end_the_careful_beginning_to_the_millisecond() -> None:
    pace = CapturePace()
    pace.enter(0, 0)
    pace.leave(LOOK_MS - 1, 0)
    assert pace.gives_way
    pace.enter(LOOK_MS, 0)
    pace.leave(LOOK_MS + 1, 0)
    assert not pace.gives_way


def test_captures_rest_no_more_when_half_of_the_quota_is_used() -> None:
    assert not is_near(500, 1_000)
    assert is_near(501, 1_000)
    assert is_near(1, 0)
