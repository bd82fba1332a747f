"""The table of a partition's readers."""

from hubweir.event_hub.consumer_group import ReaderTable


def test_readers_are_found_by_group_in_any_case() -> None:
    table = ReaderTable()
    first = table.add(1, "$Default", name=None, epoch=None, owner=("process", 7))
    second = table.add(2, "Reports", name="r", epoch=5, owner=("process", 7))
    third = table.add(3, "REPORTS", name=None, epoch=None, owner=("process", 8))
    assert table.of_group("reports") == [second, third]
    assert (second.name, second.epoch) == ("r", 5)
    assert list(table) == [first, second, third]


def test_a_removed_reader_is_gone_and_removing_it_again_does_nothing() -> None:
    table = ReaderTable()
    reader = table.add(1, "g", name=None, epoch=None, owner="owner")
    assert table.remove(1) is reader
    assert table.remove(1) is None
    assert len(table) == 0
    assert table.of_group("g") == []
