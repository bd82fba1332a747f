from __future__ import annotations

import pytest

from hubweir.amqp.transport.connection_states import (
    CLOSE_WRITTEN,
    NEXT,
    OPEN_WRITTEN,
    ConnectionState,
    ConnectionStep,
    advance,
)
from hubweir.amqp.transport.faults import IllegalState


@pytest.mark.parametrize("state", ConnectionState)
@pytest.mark.parametrize("step", ConnectionStep)
def test_every_step_from_every_state_is_decided(state: ConnectionState, step: ConnectionStep) -> None:
    try:
        after = advance(state, step)
    except IllegalState as refusal:
        assert (state, step) not in NEXT
        assert step.name in str(refusal) and state.name in str(refusal)
    else:
        assert after is NEXT[state, step]


def reachable(role_first: ConnectionStep) -> set[ConnectionState]:
    seen = {ConnectionState.START}
    edge = [NEXT[ConnectionState.START, role_first]]
    while edge:
        state = edge.pop()
        if state not in seen:
            seen.add(state)
            edge += [after for (before, _), after in NEXT.items() if before is state]
    return seen


def test_every_state_can_be_reached_and_left() -> None:
    both = reachable(ConnectionStep.SEND_HEADER) | reachable(ConnectionStep.RECEIVE_HEADER)
    assert both == set(ConnectionState)
    for state in ConnectionState:
        ways = {after for (before, _), after in NEXT.items() if before is state} - {state}
        assert ways or state is ConnectionState.END


def test_nothing_is_written_after_close() -> None:
    for (state, step), after in NEXT.items():
        if state in CLOSE_WRITTEN:
            assert step.name.startswith(("RECEIVE", "LOSE"))
            assert after in CLOSE_WRITTEN
    assert not OPEN_WRITTEN & CLOSE_WRITTEN
