"""How many units are added, and up to where."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.throughput_unit.auto_inflate import check_maximum, inflated


@pytest.mark.parametrize(
    ("units", "maximum", "enough", "expected"),
    [
        (1, 10, 2, 2),
        (1, 10, 7, 7),
        (1, 10, 10, 10),
        (1, 10, 11, 10),
        (3, 4, 2, 4),
        (10, 10, 11, 10),
        (12, 10, 99, 12),
        (19, 60, 21, 40),
        (20, 60, 41, 60),
        (20, 60, 99, 60),
    ],
)
def test_as_few_units_as_suffice_are_added_and_never_more_than_the_maximum(
    units: int, maximum: int, enough: int, expected: int
) -> None:
    assert inflated(units, maximum, lambda more: more >= enough) == expected


def test_a_maximum_below_the_units_or_out_of_range_is_refused() -> None:
    assert check_maximum("contoso", 3, 3) == 3
    for maximum in (2, 0, 41):
        with pytest.raises(ServiceError, match="contoso") as refused:
            check_maximum("contoso", 3, maximum)
        assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert check_maximum("contoso", 3, 120, units_limit=120) == 120
