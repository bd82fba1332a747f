from __future__ import annotations

import pytest

from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.link_states import DETACH_WRITTEN, NEXT, LinkState, LinkStep, advance


@pytest.mark.parametrize("state", LinkState)
@pytest.mark.parametrize("step", LinkStep)
def test_every_step_from_every_state_is_decided(state: LinkState, step: LinkStep) -> None:
    try:
        after = advance(state, step)
    except IllegalState as refusal:
        assert (state, step) not in NEXT
        assert step.name in str(refusal) and state.name in str(refusal)
    else:
        assert after is NEXT[state, step]


def test_every_state_is_reached_and_leads_to_closed() -> None:
    reached = {LinkState.DETACHED}
    leads_out = {LinkState.CLOSED}
    for _ in LinkState:
        reached |= {after for (before, _), after in NEXT.items() if before in reached}
        leads_out |= {before for (before, _), after in NEXT.items() if after in leads_out}
    assert reached == leads_out == set(LinkState)


def test_each_end_attaches_and_detaches_exactly_once_on_every_way() -> None:
    def walk(state: LinkState, taken: tuple[LinkStep, ...]) -> None:
        steps = [(step, after) for (before, step), after in NEXT.items() if before is state]
        if not steps:
            assert sorted(step.name for step in taken) == sorted(step.name for step in LinkStep)
        for step, after in steps:
            assert step not in taken
            assert (after in DETACH_WRITTEN) == (LinkStep.SEND_DETACH in (*taken, step))
            walk(after, (*taken, step))

    walk(LinkState.DETACHED, ())
