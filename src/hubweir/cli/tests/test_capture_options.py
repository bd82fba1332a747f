"""Options of capture: what was given, and nothing else; one line for people."""

from __future__ import annotations

from typing import Any

import click
from click.testing import CliRunner

from hubweir.cli.capture_options import capture_row, capture_text, given_capture, takes_capture


def given(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    @click.command()
    @takes_capture
    def command(**options: Any) -> None:
        found.update(given_capture(options))

    result = CliRunner().invoke(command, list(arguments))
    assert result.exit_code == 0, result.output
    return found


def test_only_what_was_given_is_asked_for() -> None:
    assert given() == {}
    assert given("--enable-capture", "false", "--capture-interval", "60") == {"enabled": False, "interval_s": 60}
    assert given("--skip-empty-archives", "true", "--blob-container", "films") == {
        "skip_empty_archives": True, "container": "films",
    }  # fmt: skip


CAPTURE = {
    "enabled": True, "interval_s": 60, "size_limit_bytes": 10_485_760, "destination": "EventHubArchive.LocalFolder",
    "container": "", "archive_name_format": "f", "skip_empty_archives": False,
}  # fmt: skip


def test_capture_is_told_in_one_line() -> None:
    assert capture_text(CAPTURE) == "capture: every 60 s or 10485760 bytes to EventHubArchive.LocalFolder, as f"
    assert capture_text({**CAPTURE, "enabled": False}) == "capture: off"


def test_a_row_has_a_column_for_each_figure() -> None:
    state = {
        "partition": "0", "files": 1, "behind_events": 2, "behind_bytes": 3, "uncaptured_events": 4, "last_file": "a",
        "failure": "",
    }  # fmt: skip
    assert capture_row(state) == ("0", "1", "2", "3", "4", "a", "")
