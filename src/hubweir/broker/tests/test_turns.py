"""Changes in turn: never two at once of one name, in the order they came, and many that end at once."""

from __future__ import annotations

from collections.abc import Callable

from hubweir.broker.turns import ChangeQueue, Turns


def test_a_change_waits_for_the_one_before_of_its_name_only() -> None:
    turns, begun, ends = Turns(), list[str](), list[Callable[[], None]]()

    def change(text: str) -> Callable[[Callable[[], None]], None]:
        def begin(ended: Callable[[], None]) -> None:
            begun.append(text)
            ends.append(ended)

        return begin

    for name, text in (("a", "a1"), ("a", "a2"), ("b", "b1"), ("a", "a3")):
        turns.submit(name, change(text))
    assert begun == ["a1", "b1"] and turns.is_busy("a") and turns.is_busy("b")
    ends[0]()
    assert begun == ["a1", "b1", "a2"]
    ends[1]()
    assert turns.is_busy("a") and not turns.is_busy("b")
    ends[2]()
    ends[3]()
    assert begun[-1] == "a3" and not turns.is_busy("a")


def test_changes_that_end_at_once_are_done_at_once_and_many_are_no_deep_stack() -> None:
    queue, done, ends = ChangeQueue(), list[int](), list[Callable[[], None]]()
    queue.submit(ends.append)

    def count(ended: Callable[[], None]) -> None:
        done.append(len(done))
        ended()

    for _ in range(5_000):
        queue.submit(count)
    assert not done
    ends[0]()
    assert done == list(range(5_000)) and not queue.is_busy


def test_a_change_that_asks_for_another_has_it_done_behind_itself() -> None:
    queue, order = ChangeQueue(), list[str]()

    def inner(ended: Callable[[], None]) -> None:
        order.append("inner")
        ended()

    def outer(ended: Callable[[], None]) -> None:
        queue.submit(inner)
        order.append("outer")
        ended()

    queue.submit(outer)
    assert order == ["outer", "inner"] and not queue.is_busy


def test_a_queue_tells_when_it_is_idle_each_time_and_not_between_two_changes() -> None:
    told, ends = list[int](), list[Callable[[], None]]()
    queue = ChangeQueue(lambda: told.append(len(ends)))
    queue.submit(ends.append)
    queue.submit(ends.append)
    ends[0]()
    assert told == [] and queue.is_busy
    ends[1]()
    assert told == [2] and not queue.is_busy
    queue.submit(lambda ended: ended())
    assert told == [2, 2]
