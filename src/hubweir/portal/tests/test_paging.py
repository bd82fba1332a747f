from hubweir.portal.paging import PAGE_COUNT, matches, page_of


def test_a_page_is_a_part_of_a_list_and_knows_its_place() -> None:
    items = list(range(120))
    page = page_of({"page": "2"}, items)
    assert (page.items[0], page.first, page.last, page.total, page.has_next) == (50, 51, 100, 120, True)
    assert not page_of({"page": "3"}, items).has_next
    assert page_of({}, items).number == 1


def test_a_page_that_is_not_there_is_the_last_or_the_first() -> None:
    assert page_of({"page": "99"}, list(range(60))).number == 2
    for asked in ("0", "-1", "x", "٣", "1" * 9, ""):
        assert page_of({"page": asked}, list(range(60))).number == 1
    empty = page_of({"page": "3"}, [])
    assert (empty.number, empty.total, empty.has_next) == (1, 0, False)
    assert page_of({}, list(range(PAGE_COUNT))).has_next is False


def test_names_are_searched_without_case() -> None:
    assert matches("Orders/EU", "ers/e") and not matches("orders", "x") and matches("orders", "")
