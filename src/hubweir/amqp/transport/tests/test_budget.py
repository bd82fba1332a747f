from __future__ import annotations

import pytest

from hubweir.amqp.transport.budget import LINK_COST_BYTES, VALUES_PER_BYTE, PeerBudget
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.settings import EndpointSettings
from hubweir.testing.served import served


class Thing:
    """Something that counts."""

    state_bytes = 0


def test_state_counts_up_to_the_limit_and_comes_back() -> None:
    budget = PeerBudget(EndpointSettings("s", max_state_bytes=100))
    first, second = Thing(), Thing()
    budget.charge(first, 100)
    with pytest.raises(ConnectionFault, match="more than 100 bytes"):
        budget.charge(second, 1)
    budget.give_back(first)
    budget.give_back(first)
    budget.give_back(second)
    budget.charge(second, 100)


def test_a_link_counts_with_what_its_attach_holds() -> None:
    side = served()
    assert side.link("up").state_bytes > LINK_COST_BYTES + VALUES_PER_BYTE * 20


def test_unfinished_deliveries_have_a_small_limit_before_accept_and_a_large_one_after() -> None:
    limits = EndpointSettings("s", buffered_before_auth_bytes=10, max_partial_bytes=100)
    budget = PeerBudget(limits)
    assert budget.hold_partial(10, is_accepted=False) is None
    assert budget.hold_partial(1, is_accepted=False) == 10
    assert budget.hold_partial(89) is None
    assert budget.hold_partial(1) == 100
    # What was over the limit counts too, until the link that is detached for it lets go.
    assert budget.hold_partial(-90) is None
    assert budget.hold_partial(89) is None
