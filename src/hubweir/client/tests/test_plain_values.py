"""plain_values.py: every AMQP value has a form in JSON."""

from __future__ import annotations

import json
from uuid import UUID

import pytest

from hubweir.amqp.types.format_codes import AmqpType
from hubweir.amqp.types.values import Array, Char, Decimal32, Described, Float, Int, Symbol, Timestamp, ULong
from hubweir.client.plain_values import plain_value


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, None), (True, True), (Int(-1), -1), (ULong(2**64 - 1), 2**64 - 1), ("text", "text"),
        (Symbol("name"), "name"), (Char("ß"), "ß"), (Timestamp(-5), -5), (1.5, 1.5), (Float(0.5), 0.5),
        (float("nan"), "nan"), (float("-inf"), "-inf"), (b"\xff", "/w=="), (Decimal32(b"\0\0\0\1"), "AAAAAQ=="),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"), ([1, [b"a"]], [1, ["YQ=="]]),
        (Array(AmqpType.UUID, (UUID(int=0),)), ["00000000-0000-0000-0000-000000000000"]),
        ({Symbol("a"): {1: None}, True: 2, UUID(int=1): b""},
         {"a": {"1": None}, "True": 2, "00000000-0000-0000-0000-000000000001": ""}),
        (Described(Symbol("d"), [Described(ULong(1), 2)]), [2]),
    ],
)  # fmt: skip
def test_each_value_has_its_form(value: object, plain: object) -> None:
    told = plain_value(value)
    assert told == plain
    assert json.loads(json.dumps(told, allow_nan=False)) == plain
