from __future__ import annotations

from collections.abc import Callable

from hubweir.testing.interleaving import interleaved


def counters(add: Callable[[list[int]], int]) -> list[int]:
    """What a count is after two additions, for every gap of the first one."""
    shared: list[list[int]] = []

    def make() -> tuple[Callable[[], int], Callable[[], int]]:
        count = [0]
        shared.append(count)
        return (lambda: add(count)), (lambda: add(count))

    interleaved(make)
    return [count[0] for count in shared[:-1]]  # the last one found no gap any more


def test_a_gap_between_a_read_and_a_write_is_found() -> None:
    def add(count: list[int]) -> int:
        seen = count[0]
        count[0] = seen + 1
        return seen

    found = counters(add)
    assert len(found) > 5 and {1, 2} == set(found)


def test_a_call_into_c_has_no_gap() -> None:
    def add(count: list[int]) -> int:
        count.append(1)
        return len(count)

    seen = interleaved(lambda: (lambda count: (lambda: add(count), lambda: add(count)))([]))
    assert {second for _, second in seen} == {1, 2} and {first for first, _ in seen} == {1, 2}
