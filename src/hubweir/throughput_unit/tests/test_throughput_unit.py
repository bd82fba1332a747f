"""What a unit buys, and which numbers of units are legal."""

import pytest

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.limits import units_sold
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


@pytest.mark.parametrize("units", [1, 2, 20, 40, 60, 80, 100])
def test_units_are_had_singly_up_to_twenty_then_in_blocks(units: int) -> None:
    assert check_units("contoso", units) == units


@pytest.mark.parametrize("units", [120, 1_000])
def test_a_flag_gives_more_blocks(units: int) -> None:
    with pytest.raises(ServiceError, match="--max-throughput-units"):
        check_units("contoso", units)
    assert check_units("contoso", units, units_limit=units) == units
    with pytest.raises(ServiceError, match=f"then 20 more at a time up to {units}"):
        check_units("contoso", units + 20, units_limit=units + 19)
    with pytest.raises(ServiceError):
        check_units("contoso", units - 1, units_limit=units)


@pytest.mark.parametrize(("limit", "says"), [(7, "1 to 7"), (20, "1 to 20"), (39, "1 to 20"),
                                             (100, "1 to 20, then 20 more at a time up to 100")])  # fmt: skip
def test_what_can_be_had_is_told(limit: int, says: str) -> None:
    assert units_sold(limit) == says


@pytest.mark.parametrize("units", [-1, 0, 21, 30, 39, 41, 50, 99])
def test_other_numbers_are_refused_with_the_range_and_the_flag(units: int) -> None:
    with pytest.raises(ServiceError) as refused:
        check_units("contoso", units)
    assert refused.value.condition is ARGUMENT_OUT_OF_RANGE
    assert f"'contoso': {units} throughput units; it may hold 1 to 20, then 20 more" in refused.value.text
    assert "--max-throughput-units" in refused.value.text


def test_the_flag_lifts_the_limit_to_one_thousand_and_no_further() -> None:
    assert check_units("contoso", 1_000, units_limit=1_000) == 1_000
    with pytest.raises(ServiceError) as refused:
        check_units("contoso", 1_020, units_limit=1_000)
    assert "--max-throughput-units" not in refused.value.text


def test_more_units_than_partitions_is_warned_of() -> None:
    assert units_beyond_partitions("contoso", 6, {"a": 4, "b": 2}) is None
    assert units_beyond_partitions("contoso", 6, {}) is None
    warning = units_beyond_partitions("contoso", 7, {"a": 4, "b": 2})
    assert warning is not None
    assert "7 throughput units for 6 partitions" in warning and "--no-partition-cap" in warning
