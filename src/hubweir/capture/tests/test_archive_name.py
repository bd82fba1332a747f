"""Names: every token, padded, in the pattern's order, and never one twice."""

from __future__ import annotations

import pytest

from hubweir.capture.archive_name import archive_name, name_second
from hubweir.namespace.capture_description import ARCHIVE_NAME_FORMAT

AT = 1_583_121_906  # 2020-03-02 04:05:06 UTC


def named(pattern: str, hub: str = "orders", partition_id: str = "3", second: int = AT) -> str:
    return archive_name(pattern, namespace="shop", hub=hub, partition_id=partition_id, second=second)


def test_the_usual_name_has_the_year_in_four_and_the_rest_in_two_digits() -> None:
    assert named(ARCHIVE_NAME_FORMAT) == "shop/orders/3/2020/03/02/04/05/06.avro"


def test_tokens_stand_where_the_pattern_has_them() -> None:
    turned = "x{Second}{Minute}{Hour}-{Day}{Month}{Year}/{PartitionId}.{EventHub}@{Namespace}"
    assert named(turned) == "x060504-02032020/3.orders@shop.avro"


def test_a_hub_that_is_called_like_a_token_is_not_filled_in_twice() -> None:
    assert named("{EventHub}/{PartitionId}/{Year}", hub="Year") == "Year/3/2020.avro"


@pytest.mark.parametrize(
    ("now_ms", "last", "second"),
    [(5_000, 0, 5), (5_999, 4, 5), (5_999, 5, 6), (5_000, 9, 10), (-5, 0, 1)],
)
def test_second_is_now_but_behind_the_one_before(now_ms: int, last: int, second: int) -> None:
    assert name_second(now_ms, last) == second


def test_the_year_never_gets_a_fifth_digit() -> None:
    assert named("{Year}", second=name_second(10**18, 0)) == "9999.avro"
