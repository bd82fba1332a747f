"""What a unit buys, and which numbers of units are legal."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.tiers import MESSAGE_SIZE_LIMIT_BYTES
from hubweir.throughput_unit.throughput_unit import (
    UNIT,
    Rate,
    capacity_of,
    check_units,
    units_beyond_partitions,
)


def test_a_unit_buys_what_the_service_sells() -> None:
    assert UNIT.ingress == Rate(1_048_576, 1_000)
    assert UNIT.egress == Rate(2_097_152, 4_096)


def test_a_unit_is_the_largest_publication_a_second() -> None:
    assert UNIT.ingress.bytes_per_second == MESSAGE_SIZE_LIMIT_BYTES


def test_units_add_up() -> None:
    assert capacity_of(40).ingress == Rate(41_943_040, 40_000)
    assert capacity_of(40).egress == Rate(83_886_080, 163_840)


@pytest.mark.parametrize("units", [1, 2, 40])
def test_one_to_forty_units_are_legal(units: int) -> None:
    assert check_units("contoso", units) == units


@pytest.mark.parametrize("units", [-1, 0, 41])
def test_other_numbers_are_refused_with_the_range_and_the_flag(units: int) -> None:
    with pytest.raises(ServiceError) as refused:
        check_units("contoso", units)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert f"'contoso': {units} throughput units; 1 to 40" in refused.value.text
    assert "--max-throughput-units" in refused.value.text


def test_the_flag_lifts_the_limit_to_one_hundred_and_no_further() -> None:
    assert check_units("contoso", 100, units_limit=100) == 100
    with pytest.raises(ServiceError) as refused:
        check_units("contoso", 101, units_limit=100)
    assert "--max-throughput-units" not in refused.value.text


def test_more_units_than_partitions_is_warned_of() -> None:
    assert units_beyond_partitions("contoso", 6, {"a": 4, "b": 2}) is None
    assert units_beyond_partitions("contoso", 6, {}) is None
    warning = units_beyond_partitions("contoso", 7, {"a": 4, "b": 2})
    assert warning is not None
    assert "7 throughput units for 6 partitions" in warning and "--no-partition-cap" in warning
