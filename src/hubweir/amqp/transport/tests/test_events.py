from __future__ import annotations

import dataclasses
from typing import get_args

import pytest

from hubweir.amqp.transport import events
from hubweir.amqp.transport.events import Closed, Event


@pytest.mark.parametrize("cls", get_args(Event), ids=lambda cls: cls.__name__)
def test_every_event_is_a_frozen_slotted_value_with_a_page_of_its_own(cls: type) -> None:
    assert dataclasses.is_dataclass(cls)
    assert cls.__doc__ and not cls.__doc__.startswith(cls.__name__)
    assert "__slots__" in vars(cls)


def test_the_union_has_all_of_them_and_none_can_be_changed() -> None:
    here = {
        value
        for value in vars(events).values()
        if dataclasses.is_dataclass(value) and value.__module__ == events.__name__
    }
    assert here == set(get_args(Event))
    closed = Closed(None, by_peer=True, clean=True)
    with pytest.raises(dataclasses.FrozenInstanceError):
        closed.clean = False  # type: ignore[misc]
