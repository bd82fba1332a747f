"""Which status lets an entity take events or messages, and give them out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hubweir.errors import ENTITY_DISABLED, ServiceError
from hubweir.namespace.availability import check_may_receive, check_may_send
from hubweir.namespace.entity import Availability
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.queue_description import QueueDescription


def allows(check: Callable[[EventHubDescription], None], availability: Availability) -> bool:
    try:
        check(EventHubDescription("hub", 1, availability=availability))
    except ServiceError as refusal:
        assert refusal.condition is ENTITY_DISABLED
        assert "'hub'" in refusal.text and availability.text in refusal.text
        return False
    return True


@pytest.mark.parametrize(
    ("availability", "sends", "receives"),
    [
        (Availability.ACTIVE, True, True),
        (Availability.DISABLED, False, False),
        (Availability.SEND_DISABLED, False, True),
        (Availability.RECEIVE_DISABLED, True, False),
    ],
)
def test_each_status_stops_its_halves(availability: Availability, sends: bool, receives: bool) -> None:
    assert (allows(check_may_send, availability), allows(check_may_receive, availability)) == (sends, receives)


def test_the_text_names_the_kind_and_what_it_would_take_or_give() -> None:
    queue = QueueDescription("orders", availability=Availability.DISABLED)
    with pytest.raises(ServiceError, match="Queue 'orders' takes no messages: its status is Disabled"):
        check_may_send(queue)
    with pytest.raises(ServiceError, match="Queue 'orders' gives no messages out"):
        check_may_receive(queue)
    with pytest.raises(ServiceError, match="Event hub 'hub' takes no events"):
        check_may_send(EventHubDescription("hub", 1, availability=Availability.DISABLED))
