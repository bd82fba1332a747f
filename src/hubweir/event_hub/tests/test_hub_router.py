"""Routing of transfers without a key."""

from hubweir.event_hub.hub_router import HubRouter


def test_transfers_without_a_key_rotate_over_all_partitions() -> None:
    router = HubRouter(3)
    assert [router.next_partition() for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_many_turns_at_once_are_those_taken_one_by_one() -> None:
    one, many = HubRouter(4), HubRouter(4)
    for count in (0, 1, 3, 2, 9, 4, 1, 50):
        assert list(many.next_partitions(count)) == [one.next_partition() for _ in range(count)]


def test_partitions_that_are_away_are_passed_over_and_the_others_keep_their_turns() -> None:
    router = HubRouter(4)
    assert list(router.next_partitions(5, {1, 2})) == [0, 3, 0, 3, 0]
    assert list(router.next_partitions(2, {1})) == [2, 3]
    assert [router.next_partition({0}), router.next_partition(), router.next_partition()] == [1, 2, 3]


def test_when_all_are_away_each_has_its_turn() -> None:
    router = HubRouter(2)
    assert list(router.next_partitions(3, {0, 1})) == [0, 1, 0]
    assert list(router.next_partitions(0)) == []
    assert router.next_partition() == 1
