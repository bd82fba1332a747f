"""Decisions one by one; what many of them come to is in test_processor_group.py."""

from random import Random

import pytest

from hubweir.client.load_balancer import LoadBalancer, Ownership, OwnershipClaim, Strategy

NOW_S = 1_000.0
LEASE_S, INTERVAL_S = 60.0, 10.0
PARTITIONS = [str(number) for number in range(6)]


def balancer(owner_id: str = "me", strategy: Strategy = Strategy.GREEDY) -> LoadBalancer:
    return LoadBalancer(owner_id, lease_s=LEASE_S, interval_s=INTERVAL_S, strategy=strategy, random=Random(1))


def leases(owner_id: str, *partition_ids: str, age_s: float = 5) -> list[Ownership]:
    return [Ownership(each, owner_id, NOW_S - age_s, f"etag-{each}") for each in partition_ids]


def ids(claims: tuple[OwnershipClaim, ...]) -> list[str]:
    return sorted(claim.partition_id for claim in claims)


def test_first_processor_takes_everything_at_once_or_one_a_round() -> None:
    assert ids(balancer().decide([], PARTITIONS, NOW_S).claims) == PARTITIONS
    assert len(balancer(strategy=Strategy.BALANCED).decide([], PARTITIONS, NOW_S).claims) == 1


def test_lease_that_nobody_ever_held_is_claimed_without_an_etag() -> None:
    (claim,) = balancer().decide([], ["0"], NOW_S).claims
    assert claim == OwnershipClaim("0", None)


def test_free_partitions_are_taken_up_to_an_even_share() -> None:
    known = leases("other", "0")
    round_of_ours = balancer().decide(known, PARTITIONS, NOW_S)
    assert len(round_of_ours.claims) == 3
    assert "0" not in ids(round_of_ours.claims)


def test_own_leases_are_renewed_with_their_etags_also_after_their_time() -> None:
    own = [*leases("me", "0"), *leases("me", "1", age_s=500)]
    claims = balancer().decide([*own, *leases("other", "2", "3", "4", "5")], PARTITIONS, NOW_S).claims
    assert claims[:2] == (OwnershipClaim("0", "etag-0"), OwnershipClaim("1", "etag-1"))


def test_given_up_and_outlived_leases_are_free() -> None:
    known = [*leases("", "0"), *leases("dead", "1", age_s=LEASE_S), *leases("other", "2", "3", "4", "5")]
    assert ids(balancer().decide(known, PARTITIONS, NOW_S).claims) == ["0", "1"]


def test_lease_of_a_living_owner_is_left_alone_up_to_its_last_moment() -> None:
    known = [*leases("slow", "0", age_s=LEASE_S - 0.001), *leases("me", "1")]
    assert ids(balancer().decide(known, ["0", "1"], NOW_S).claims) == ["1"]


def test_one_partition_a_round_is_taken_from_the_fullest() -> None:
    known = [*leases("full", "0", "1", "2", "3"), *leases("other", "4", "5")]
    (claim,) = balancer().decide(known, PARTITIONS, NOW_S).claims
    assert claim.partition_id in "0123"
    assert claim.etag == f"etag-{claim.partition_id}"


@pytest.mark.parametrize("mine", [("3", "4"), ("3",)])
def test_nothing_is_taken_where_it_would_not_make_the_two_more_even(mine: tuple[str, ...]) -> None:
    theirs = [each for each in ("0", "1", "2", "3", "4") if each not in mine][: len(mine) + 1]
    known = [*leases("other", *theirs), *leases("me", *mine)]
    partitions = [*theirs, *mine]
    assert ids(balancer().decide(known, partitions, NOW_S).claims) == sorted(mine)


def test_unevenness_that_shares_alone_would_leave_is_evened() -> None:
    # 3, 1, 1 of five among three: everybody has the smaller share or more, and it is still not even.
    known = [*leases("full", "0", "1", "2"), *leases("other", "3"), *leases("me", "4")]
    assert len(balancer().decide(known, PARTITIONS[:5], NOW_S).claims) == 2


def test_processor_without_a_partition_may_wait_in_reserve() -> None:
    known = [*leases("a", "0"), *leases("b", "1")]
    assert balancer().decide(known, ["0", "1"], NOW_S).claims == ()


def test_records_of_partitions_that_the_hub_does_not_have_count_for_nothing() -> None:
    known = leases("other", "97", "98", "99")
    assert ids(balancer().decide(known, ["0", "1"], NOW_S).claims) == ["0", "1"]


def test_next_round_is_regular_or_right_behind_the_end_of_a_lease() -> None:
    regular = balancer().decide(leases("other", "0"), ["0"], NOW_S).next_at_s
    assert NOW_S + INTERVAL_S <= regular <= NOW_S + INTERVAL_S * 1.1
    soon = balancer().decide(leases("dead", "0", age_s=LEASE_S - 2), ["0"], NOW_S).next_at_s
    assert NOW_S + 2 < soon < NOW_S + 2.1


def test_lease_that_one_late_round_would_lose_is_refused() -> None:
    with pytest.raises(ValueError, match="at least twice as long"):
        LoadBalancer("me", lease_s=10, interval_s=6, random=Random(1))
    with pytest.raises(ValueError, match="owner id is empty"):
        LoadBalancer("", lease_s=60, interval_s=6, random=Random(1))


def test_record_of_a_store_becomes_a_lease() -> None:
    record = {"partition_id": "3", "owner_id": None, "last_modified_time": None}
    assert Ownership.of(record) == Ownership("3", "", 0.0, None)
    full = {"partition_id": "3", "owner_id": "x", "last_modified_time": 12.5, "etag": "e"}
    assert Ownership.of(full) == Ownership("3", "x", 12.5, "e")
