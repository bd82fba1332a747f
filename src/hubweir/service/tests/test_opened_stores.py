"""A store is open when its logs were opened in the life that its broker has now."""

from __future__ import annotations

from hubweir.service.opened_stores import OpenedStores


def test_stores_are_open_once_their_logs_were_opened() -> None:
    stores = OpenedStores()
    began = stores.opening([2, 0])
    assert stores.indexes == ()
    stores.opened(began)
    assert stores.indexes == (0, 2)


def test_a_broker_that_goes_or_comes_has_its_logs_to_open_anew() -> None:
    stores = OpenedStores()
    stores.opened(stores.opening([0, 1]))
    stores.changed(1)
    assert stores.indexes == (0,)
    stores.changed(1)
    assert stores.indexes == (0,)
    stores.opened(stores.opening([1]))
    assert stores.indexes == (0, 1)


def test_an_opening_of_an_earlier_life_says_nothing_of_this_one() -> None:
    """Its broker went and came back meanwhile: what was on its way ended in refusals."""
    stores = OpenedStores()
    earlier = stores.opening([0, 1])
    stores.changed(1)
    stores.changed(1)
    now = stores.opening([1])
    stores.opened(earlier)
    assert stores.indexes == (0,)
    stores.opened(now)
    assert stores.indexes == (0, 1)
