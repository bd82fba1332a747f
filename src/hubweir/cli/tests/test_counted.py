"""A number and its noun agree."""

from hubweir.cli.counted import counted


def test_one_is_one_and_everything_else_is_several() -> None:
    assert [counted(number, "log") for number in (0, 1, 2)] == ["0 logs", "1 log", "2 logs"]
