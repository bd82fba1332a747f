from hubweir.spark.sink.unsettled import Unsettled


class Told:
    """A target that writes down when it was waited for."""

    def __init__(self, name: str, order: list[str]) -> None:
        self._name = name
        self._order = order

    def settle_first(self) -> None:
        self._order.append(self._name)

    def close(self) -> None:
        """Nothing is open."""


def test_the_oldest_are_waited_for_when_there_is_no_room() -> None:
    order: list[str] = []
    one, two = Told("one", order), Told("two", order)
    unsettled = Unsettled(most_bytes=10)
    for target, size in ((one, 4), (two, 4), (one, 2)):
        unsettled.add(target, size)
    assert order == []
    unsettled.add(two, 5)
    assert order == ["one", "two"]
    unsettled.settle()
    assert order == ["one", "two", "one", "two"]
    unsettled.settle()
    assert len(order) == 4


def test_one_that_is_larger_than_the_room_is_waited_for_itself() -> None:
    order: list[str] = []
    Unsettled(most_bytes=10).add(Told("large", order), 11)
    assert order == ["large"]
