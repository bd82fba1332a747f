"""Routing of transfers without a key."""

from hubweir.event_hub.hub_router import HubRouter


def test_transfers_without_a_key_rotate_over_all_partitions() -> None:
    router = HubRouter(3)
    assert [router.next_partition() for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_many_turns_at_once_are_those_taken_one_by_one() -> None:
    one, many = HubRouter(4), HubRouter(4)
    for count in (0, 1, 3, 2, 9, 4, 1, 50):
        assert list(many.next_partitions(count)) == [one.next_partition() for _ in range(count)]
