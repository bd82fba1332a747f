import pytest

from hubweir.cli.render import table


def test_rows_stand_under_their_headings_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    table(("name", "count"), [("[red]hub[/red]", "7")])
    heading, _, row = capsys.readouterr().out.rstrip().splitlines()
    assert heading.split() == ["name", "count"]
    assert row.split() == ["[red]hub[/red]", "7"]


LONG = "x" * 1_024


def test_a_pipe_gets_every_row_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = "a = 1 AND " * 100 + "b = 2"
    table(("setting", "value"), [("metadata", LONG), ("filter", words), ("short", "1")])
    heading, line, *rows = capsys.readouterr().out.splitlines()
    assert [row.rstrip().split(maxsplit=1) for row in rows] == [
        ["metadata", LONG], ["filter", words], ["short", "1"],
    ]  # fmt: skip
    assert len(line) < 1_100 and heading.split() == ["setting", "value"]


def test_a_narrow_terminal_folds_what_is_long_and_cuts_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    table(("setting", "value"), [("metadata", LONG)])
    printed = capsys.readouterr().out
    assert printed.count("x") == len(LONG) and "…" not in printed
    assert max(map(len, printed.splitlines())) <= 80
