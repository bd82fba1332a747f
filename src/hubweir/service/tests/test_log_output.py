"""log_output.py: lines as text and as JSON, few of a kind, whatever becomes of who reads them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from hubweir.service.line_limit import WINDOW_S
from hubweir.service.log_output import OTHER_LINES, LogOutput, begin_log
from hubweir.service_log import ALARM, SEND_REFUSED, SLOW_SYNC


class World:
    """A logger that prints to a text, at a time that the test sets."""

    def __init__(self, log_format: str, process: int | None = None) -> None:
        self.now_s = 0.0
        self.stream = io.StringIO()
        self.output = LogOutput(log_format, process=process, stream=self.stream, clock=lambda: self.now_s)
        self.logger = logging.getLogger("hubweir.a_world")
        self.logger.setLevel(logging.INFO)
        self.logger.handlers[:] = [self.output]
        self.logger.propagate = False

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    def refuse(self, count: int, condition: str = "c") -> None:
        for number in range(count):
            SEND_REFUSED.say(self.logger, condition=condition, peer="p", entity="", text=f"no {number}")


@pytest.fixture
def world() -> Iterator[World]:
    made = World("text")
    yield made
    made.logger.handlers.clear()
    made.logger.propagate = True


def test_a_text_line_bears_its_kind_or_the_module_that_says_it(world: World) -> None:
    SLOW_SYNC.say(world.logger, log="a log", ms=1_200)
    world.logger.error("not served yet: %s", "x")
    first, second = world.lines
    assert first.endswith(" WARNING slow-sync: a sync of a log took 1200 ms")
    assert second.endswith(" ERROR hubweir.a_world: not served yet: x")


def test_lines_of_one_of_several_processes_say_which() -> None:
    world = World("text", process=3)
    SLOW_SYNC.say(world.logger, log="a log", ms=1_200)
    assert " WARNING process 3 slow-sync: " in world.lines[0]


def test_a_line_as_json_has_the_text_and_its_fields() -> None:
    world = World("json", process=1)
    SLOW_SYNC.say(world.logger, log='a "log"\n of é', ms=1_200)
    document = json.loads(world.lines[0])
    assert document.pop("time").endswith("Z")
    assert document == {
        "level": "warning", "kind": "slow-sync", "process": 1,
        "message": 'a sync of a "log"? of é took 1200 ms', "fields": {"log": 'a "log"? of é', "ms": 1_200},
    }  # fmt: skip


def test_a_fault_as_json_is_one_line_with_its_traceback() -> None:
    world = World("json")
    try:
        raise ValueError("oh\nno")
    except ValueError:
        world.logger.exception("a fault")
    [line] = world.lines
    assert "ValueError: oh\nno" in json.loads(line)["exception"]


def test_a_flood_is_cut_and_told_and_hides_no_other_line(world: World) -> None:
    world.refuse(500)
    SLOW_SYNC.say(world.logger, log="a log", ms=1_200)
    world.refuse(1, "other")
    assert [line.split(" ", 3)[3] for line in world.lines[-2:]] == [
        "slow-sync: a sync of a log took 1200 ms", "send-refused: send refused: other, peer p: no 0",
    ]  # fmt: skip
    assert len(world.lines) == SEND_REFUSED.per_minute + 2
    world.now_s = WINDOW_S
    world.output.tick()
    assert world.lines[-1].endswith(" INFO send-refused: 490 more lines like this in 60 s, not shown (c)")


def test_a_line_that_is_of_no_kind_is_limited_by_its_wording(world: World) -> None:
    for number in range(OTHER_LINES + 5):
        world.logger.error("bad %d", number)
    world.logger.error("worse %d", 1)
    assert len(world.lines) == OTHER_LINES + 1
    world.output.close()
    assert world.lines[-1].endswith(" ERROR hubweir.a_world: 5 more lines like this in 60 s, not shown (bad %d)")


def test_texts_that_a_library_puts_together_are_limited_by_their_place(world: World) -> None:
    for number in range(OTHER_LINES + 5):
        world.logger.error(f"transport <0x{number:x}> is broken")
    assert len(world.lines) == OTHER_LINES
    assert len(world.output._limit._windows) == 1, "what it remembers has an end"
    world.output.close()
    assert " 5 more lines like this in 60 s, not shown (test_log_output.py:" in world.lines[-1]


def test_a_line_without_a_kind_is_one_line_without_secrets_for_this_output_alone(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Attacks 87 and 88."""
    world.logger.propagate = True
    world.logger.error("cannot reach %s", "sb://host;SharedAccessKey=abc\n2026-01-01 INFO ready: all is well")
    [line] = world.lines
    assert line.endswith("cannot reach sb://host;SharedAccessKey=(secret)?2026-01-01 INFO ready: all is well")
    assert "abc\n" in caplog.messages[-1]


def test_alarms_limit_themselves_and_are_all_printed(world: World) -> None:
    for number in range(200):
        ALARM.say(world.logger, alarm="damage", about=str(number), text="x")
    assert len(world.lines) == 200


def test_a_log_that_nobody_reads_any_more_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    world = World("text")
    world.stream.close()
    SLOW_SYNC.say(world.logger, log="a log", ms=1_200)
    assert capsys.readouterr().err == ""


def test_only_warnings_of_libraries_are_printed() -> None:
    root, ours = logging.getLogger(), logging.getLogger("hubweir")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    try:
        output = begin_log("debug", "text")
        assert root.handlers == [output]
        assert not logging.getLogger("azure.core").isEnabledFor(logging.INFO)
        assert logging.getLogger("hubweir.x").isEnabledFor(logging.DEBUG)
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        ours.setLevel(levels[1])
