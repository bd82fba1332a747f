"""Shares of several processes add up exactly, and together they let through no more than one would."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubweir.throughput_unit.admission import Admitted, NamespaceAdmission
from hubweir.throughput_unit.share import LEASE_MS, share_out, split
from hubweir.throughput_unit.throughput_unit import capacity_of
from hubweir.throughput_unit.usage import Usage


def check_split(split_of: Callable[..., list[int]], total: int, weights: list[int]) -> None:
    parts = split_of(total, weights)
    assert sum(parts) == total
    assert min(parts) >= 1
    ranked = sorted(zip(weights, parts, strict=True))
    assert all(low[1] <= high[1] + 1 for low, high in zip(ranked, ranked[1:], strict=False))


@given(total=st.integers(100, 10**8), weights=st.lists(st.integers(0, 10**9), min_size=1, max_size=16))
def test_parts_add_up_to_the_whole_and_more_demand_never_gets_less(total: int, weights: list[int]) -> None:
    check_split(split, total, weights)


def test_the_check_finds_a_split_that_loses_the_remainder() -> None:
    def rounded(total: int, weights: list[int]) -> list[int]:
        return [max(1, total * weight // sum(weights)) for weight in weights]

    with pytest.raises(AssertionError):
        check_split(rounded, 1_000, [1, 1, 1])


def test_demand_decides_and_the_quiet_keep_a_little() -> None:
    assert split(1_000, [0, 900, 0]) == [33, 934, 33]
    assert split(1_000, [0, 0]) == [500, 500]
    assert split(1_000, [100, 300]) == [275, 725]


def test_three_processes_with_moving_shares_stay_within_the_units_and_use_them() -> None:
    """All the traffic moves from process to process; every 100 ms shares follow what was asked for."""
    whole = capacity_of(2)
    processes = [
        NamespaceAdmission("contoso", Usage(now_ms=0, wall_ms=0), now_ms=0, units=2, maximum_units=None)
        for _ in range(3)
    ]
    for process, share in zip(
        processes, share_out(whole, [process.take_asked() for process in processes]), strict=True
    ):
        process.set_share(share, 0)
    admitted = 0
    for now_ms in range(20_000):
        busy = processes[now_ms // 3_000 % 3]
        while isinstance(busy.admit(100, 1, now_ms), Admitted):
            admitted += 1
        if now_ms % LEASE_MS == LEASE_MS - 1:
            shares = share_out(whole, [process.take_asked() for process in processes])
            for process, share in zip(processes, shares, strict=True):
                process.set_share(share, now_ms)
    # Never more than burst and rate, and nearly all of the nine tenths that follow demand.
    assert 0.85 * 2_000 * 20 < admitted <= 2_000 + 2_000 * 20


def test_a_share_turns_no_limits_on() -> None:
    process = NamespaceAdmission("contoso", Usage(now_ms=0, wall_ms=0), now_ms=0, units=None)
    process.set_share(capacity_of(1), 0)
    assert isinstance(process.admit(10**9, 10**6, 0), Admitted)
    assert process.ingress_room(0).events is None
