"""A step runs to its end, says how long it took, and shows why it failed."""

import os
import sys
from pathlib import Path

import pytest

from bootstrap.steps import TAIL_LINES, StepFailed, step


def run(tmp_path: Path, code: str) -> None:
    step("counting", [sys.executable, "-c", code], log=tmp_path / "log/out.txt", environ=os.environ, cwd=tmp_path)


def test_output_goes_to_the_log_and_one_line_says_that_it_is_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, "print('one')")
    assert (tmp_path / "log/out.txt").read_text() == "one\n"
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "hubweir: counting: done, " in shown.err


def test_a_failure_carries_the_last_lines_of_the_output(tmp_path: Path) -> None:
    with pytest.raises(StepFailed) as caught:
        run(tmp_path, "import sys; print('\\n'.join(f'line {n}' for n in range(100))); sys.exit(3)")
    text = str(caught.value)
    assert "counting failed" in text
    assert f"line {100 - TAIL_LINES}\n" in text
    assert f"line {99 - TAIL_LINES}\n" not in text


def test_a_command_that_is_not_there_is_a_failed_step(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="counting"):
        step("counting", [tmp_path / "none"], log=tmp_path / "log.txt", environ=os.environ, cwd=tmp_path)
