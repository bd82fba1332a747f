"""Routing of transfers without a key."""

import pytest

from hubweir.event_hub.event_hub import HubRouter


def test_transfers_without_a_key_rotate_over_all_partitions() -> None:
    router = HubRouter(3)
    assert [router.next_partition() for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_a_closed_partition_is_passed_over_in_turn_but_not_for_its_keys() -> None:
    router = HubRouter(4)
    router.close_partition(1)
    assert [router.next_partition() for _ in range(6)] == [0, 2, 3, 0, 2, 3]
    assert router.partition_of_key(b"pk1") == 1
    router.open_partition(1)
    assert [router.next_partition() for _ in range(4)] == [0, 1, 2, 3]


def test_when_every_partition_is_closed_the_turn_still_goes_on() -> None:
    router = HubRouter(2)
    router.close_partition(0)
    router.close_partition(1)
    assert {router.next_partition() for _ in range(4)} == {0, 1}


@pytest.mark.parametrize("closed", [(), (1,), (0, 3), (0, 1, 2, 3)])
def test_many_turns_at_once_are_those_taken_one_by_one(closed: tuple[int, ...]) -> None:
    one, many = HubRouter(4), HubRouter(4)
    for router in (one, many):
        for partition in closed:
            router.close_partition(partition)
    for count in (0, 1, 3, 2, 9, 4, 1, 50):
        assert list(many.next_partitions(count)) == [one.next_partition() for _ in range(count)]
