from __future__ import annotations

from typing import get_args

import pytest
from msgspec import Struct

from hubweir.amqp.transport import events
from hubweir.amqp.transport.events import Closed, Event


@pytest.mark.parametrize("cls", get_args(Event), ids=lambda cls: cls.__name__)
def test_every_event_is_a_frozen_value_with_a_page_of_its_own(cls: type) -> None:
    assert issubclass(cls, Struct) and cls.__struct_config__.frozen
    assert cls.__doc__ and not cls.__doc__.startswith(cls.__name__)


def test_the_union_has_all_of_them_and_none_can_be_changed() -> None:
    here = {
        value
        for value in vars(events).values()
        if isinstance(value, type) and issubclass(value, Struct) and value.__module__ == events.__name__
    }
    assert here == set(get_args(Event))
    closed = Closed(None, by_peer=True, clean=True)
    with pytest.raises(AttributeError, match="immutable"):
        closed.clean = False  # type: ignore[misc]
