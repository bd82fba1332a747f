"""A price list of the user's, and what a namespace's usage comes to by it.

A TOML file with the prices of what is billed; what it does not name costs nothing:

    currency = "EUR"
    throughput_unit_hour = 0.028     # an hour of the clock costs the most units held at any moment of it
    million_events_in = 0.026

Amounts are exact decimal numbers; a line is rounded to cents, half up, and the sum is that of the lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

from hubweir.errors import HubweirError

CENT = Decimal("0.01")
GIB = 1024**3


class BadPrices(HubweirError):
    """A price list that cannot be used: which file, which member, what it may be."""


@dataclass(frozen=True, slots=True)
class _Billed:
    """column: of the usage by the hour, summed up. per: how much of it the price is for. what: for people."""

    column: str
    per: int
    what: str


# By the name of its price.
BILLED = {
    "throughput_unit_hour": _Billed("units", 1, "throughput units, hours"),
    "million_events_in": _Billed("events_in", 1_000_000, "events in, millions"),
    "million_events_out": _Billed("events_out", 1_000_000, "events out, millions"),
    "gib_in": _Billed("bytes_in", GIB, "in, GiB"),
    "gib_out": _Billed("bytes_out", GIB, "out, GiB"),
}


@dataclass(frozen=True, slots=True)
class BillLine:
    """quantity × price, which is amount rounded to cents."""

    what: str
    quantity: Decimal
    price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PriceList:
    """prices: by the names of BILLED. currency: how amounts are called."""

    currency: str
    prices: Mapping[str, Decimal]

    @classmethod
    def read(cls, path: Path) -> PriceList:
        """The list in a file. Raises BadPrices."""
        try:
            members: dict[str, Any] = tomllib.loads(path.read_text(), parse_float=Decimal)
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise BadPrices(f"the price list {path} cannot be read: {error}") from None
        currency = members.pop("currency", "")
        if not isinstance(currency, str):
            raise BadPrices(f'{path}: currency is a text, such as "EUR"')
        for name, price in members.items():
            if name not in BILLED:
                raise BadPrices(f"{path}: nothing is billed as {name}; {', '.join(BILLED)} exist")
            is_number = isinstance(price, int | Decimal) and not isinstance(price, bool)
            if not is_number or not Decimal(price).is_finite() or price < 0:
                raise BadPrices(f"{path}: {name} is a price, a number from 0")
        return cls(currency, {name: Decimal(price) for name, price in members.items()})

    def bill(self, rows: Sequence[Mapping[str, int]]) -> list[BillLine]:
        """What these hours of usage cost, one line for each price of the list. rows: as the namespace tells them."""
        lines = []
        for name, price in self.prices.items():
            billed = BILLED[name]
            quantity = Decimal(sum(row[billed.column] for row in rows)) / billed.per
            amount = (quantity * price).quantize(CENT, ROUND_HALF_UP)
            lines.append(BillLine(billed.what, quantity, price, amount))
        return lines
