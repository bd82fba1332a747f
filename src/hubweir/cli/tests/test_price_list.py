"""Bills by a price list of the user's: exact, rounded to cents, and refused when the list says what nobody bills."""

from decimal import Decimal
from pathlib import Path

import pytest

from hubweir.cli.price_list import BILLED, BadPrices, PriceList


def prices(tmp_path: Path, text: str) -> PriceList:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    return PriceList.read(file)


def row(**columns: int) -> dict[str, int]:
    return {billed.column: 0 for billed in BILLED.values()} | columns


def test_a_bill_has_a_line_for_each_price_and_no_other(tmp_path: Path) -> None:
    known = prices(tmp_path, 'currency = "EUR"\nthroughput_unit_hour = 0.028\nmillion_events_in = 0.026\n')
    bill = known.bill([row(units=3, events_in=1_500_000), row(units=1, events_in=500_000, bytes_in=7)])
    assert [(line.what, line.quantity, line.amount) for line in bill] == [
        ("throughput units, hours", Decimal(4), Decimal("0.11")),
        ("events in, millions", Decimal(2), Decimal("0.05")),
    ]


def test_amounts_are_rounded_half_up_to_cents_and_exact_before(tmp_path: Path) -> None:
    known = prices(tmp_path, "throughput_unit_hour = 0.005\ngib_out = 1\n")
    assert [line.amount for line in known.bill([row(units=1, bytes_out=2**29)])] == [Decimal("0.01"), Decimal("0.50")]
    # A tenth is no binary number; a million of them is.
    assert known.bill([row(units=1_000_001)])[0].amount == Decimal("5000.01")


def test_no_hours_cost_nothing(tmp_path: Path) -> None:
    (line,) = prices(tmp_path, "throughput_unit_hour = 3").bill([])
    assert (line.quantity, line.amount) == (0, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("unit_hour = 1", "nothing is billed as unit_hour; throughput_unit_hour, million_events_in"),
        ("throughput_unit_hour = -1", "a number from 0"),
        ("throughput_unit_hour = true", "a number from 0"),
        ("throughput_unit_hour = nan", "a number from 0"),
        ('throughput_unit_hour = "1"', "a number from 0"),
        ("currency = 3", "currency is a text"),
        ("throughput_unit_hour", "cannot be read"),
    ],
)
def test_a_list_that_says_what_nobody_bills_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadPrices, match=r"prices\.toml") as refused:
        prices(tmp_path, text)
    assert says in str(refused.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadPrices, match="cannot be read"):
        PriceList.read(tmp_path / "none.toml")
