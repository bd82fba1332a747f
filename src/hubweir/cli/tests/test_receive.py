import click
import pytest
from click.testing import CliRunner

from hubweir.cli.main import hubweir
from hubweir.cli.receive import Start
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", EARLIEST),
        ("latest", LATEST),
        ("sequence:0", EventPosition(PositionKind.SEQUENCE_NUMBER, 0, True)),
        ("offset:4711", EventPosition(PositionKind.OFFSET, 4711, True)),
        ("2026-01-31T12:00Z", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
        ("2026-01-31T12:00", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
        ("2026-01-31T13:00+01:00", EventPosition(PositionKind.ENQUEUED_TIME, 1_769_860_800_000, True)),
    ],
)
def test_start_is_a_word_a_number_or_a_time(text: str, position: EventPosition) -> None:
    assert Start().convert(text, None, None) == position


@pytest.mark.parametrize("text", ["", "first", "sequence:", "sequence:-1", "sequence:٣", "offset:1.5", "31.1.2026"])
def test_anything_else_is_refused_with_what_may_stand_there(text: str) -> None:
    with pytest.raises(click.BadParameter, match="earliest, latest, sequence:N"):
        Start().convert(text, None, None)


def test_numbers_of_one_partition_are_not_asked_of_all() -> None:
    refused = CliRunner().invoke(hubweir, ["receive", "orders", "--from", "sequence:5"])
    assert refused.exit_code == 2
    assert "add one --partition" in refused.output
