"""The table of a reader's link: what may follow what."""

from __future__ import annotations

import pytest

from hubweir.gateway.amqp.reader_states import NEXT, ReaderState, ReaderStep

WAITING = (ReaderState.READING, ReaderState.CANCELLED, ReaderState.ASKING)


def steps_from(state: ReaderState) -> set[ReaderStep]:
    return {step for at, step in NEXT if at is state}


@pytest.mark.parametrize("state", ReaderState)
def test_a_link_can_end_in_any_state_and_nothing_follows(state: ReaderState) -> None:
    assert NEXT[state, ReaderStep.END] is ReaderState.OVER
    assert steps_from(ReaderState.OVER) == {ReaderStep.END}


@pytest.mark.parametrize("state", ReaderState)
def test_nothing_is_asked_of_the_broker_while_an_answer_is_waited_for(state: ReaderState) -> None:
    asks = steps_from(state) & {ReaderStep.READ, ReaderStep.ASK}
    assert bool(asks) is (state is ReaderState.READY)


@pytest.mark.parametrize("state", WAITING)
def test_an_answer_makes_the_link_ready_whatever_was_asked(state: ReaderState) -> None:
    assert NEXT[state, ReaderStep.ANSWERED] is ReaderState.READY


def test_every_state_is_reached_and_left() -> None:
    assert {after for (before, _), after in NEXT.items() if before is not after} == {*ReaderState} - {
        ReaderState.OPENING
    }
    assert {before for before, _ in NEXT} == {*ReaderState}
    assert {step for _, step in NEXT} == {*ReaderStep}
