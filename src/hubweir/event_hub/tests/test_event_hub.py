"""Routing of transfers without a key."""

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
