"""shared_log.py: the service that the second engine stands on: one order for all, and a front that is forgotten."""

from __future__ import annotations

from hubweir.testing.shared_log import SharedEntry, SharedLog


def entry(name: str) -> SharedEntry:
    return SharedEntry(1, name)


def test_all_who_follow_read_every_entry_in_one_order_whoever_came_first() -> None:
    shared, early, late = SharedLog(), list[tuple[int, object]](), list[tuple[int, object]]()
    shared.follow(lambda position, each: early.append((position, each.by)))
    shared.put(entry("a"))
    shared.follow(lambda position, each: late.append((position, each.by)))
    shared.put(entry("b"))
    assert early == late == [(0, "a"), (1, "b")]


def test_whoever_left_reads_no_more_and_what_is_trimmed_is_read_by_nobody_who_comes() -> None:
    shared, left, late = SharedLog(), list[int](), list[int]()

    def follower(position: int, each: SharedEntry) -> None:
        left.append(position)

    shared.follow(follower)
    for name in "abc":
        shared.put(entry(name))
    shared.leave(follower)
    shared.leave(follower)
    shared.put(entry("d"))
    shared.trim(2)
    shared.follow(lambda position, each: late.append(position))
    assert left == [0, 1, 2] and late == [2, 3]


def test_a_follower_that_leaves_while_an_entry_is_told_keeps_no_other_from_it() -> None:
    shared, told = SharedLog(), list[str]()

    def leaves(position: int, each: SharedEntry) -> None:
        told.append("one")
        shared.leave(leaves)

    shared.follow(leaves)
    shared.follow(lambda position, each: told.append("two"))
    shared.put(entry("a"))
    shared.put(entry("b"))
    assert told == ["one", "two", "two"]
