import pytest

from hubweir.cli.render import table


def test_rows_stand_under_their_headings_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    table(("name", "count"), [("[red]hub[/red]", "7")])
    heading, _, row = capsys.readouterr().out.rstrip().splitlines()
    assert heading.split() == ["name", "count"]
    assert row.split() == ["[red]hub[/red]", "7"]
