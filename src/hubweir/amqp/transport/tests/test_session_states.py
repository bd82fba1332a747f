from __future__ import annotations

import pytest

from hubweir.amqp.transport.faults import IllegalState
from hubweir.amqp.transport.session_states import CAN_END, END_WRITTEN, NEXT, SessionState, SessionStep, advance


@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("step", SessionStep)
def test_every_step_from_every_state_is_decided(state: SessionState, step: SessionStep) -> None:
    try:
        after = advance(state, step)
    except IllegalState as refusal:
        assert (state, step) not in NEXT
        assert step.name in str(refusal) and state.name in str(refusal)
    else:
        assert after is NEXT[state, step]


def test_every_state_is_reached_from_unmapped_and_leads_to_the_end() -> None:
    reached = {SessionState.UNMAPPED}
    for _ in SessionState:
        reached |= {after for (before, _), after in NEXT.items() if before in reached}
    assert reached == set(SessionState)
    leads_out = {SessionState.ENDED}
    for _ in SessionState:
        leads_out |= {before for (before, _), after in NEXT.items() if after in leads_out}
    assert leads_out == set(SessionState)


def test_end_is_written_once_and_only_where_the_sets_say() -> None:
    for state in SessionState:
        may_end = (state, SessionStep.SEND_END) in NEXT
        assert may_end == (state in CAN_END or state is SessionState.END_RECEIVED)
        assert not (may_end and state in END_WRITTEN)
