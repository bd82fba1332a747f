"""A read of many frames costs few calls, and means what its frames mean one by one.

Long because each kind of stretch is held against its frames, sound and at fault.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any, TypeGuard

import pytest

from hubweir.amqp.endpoint import Endpoint, EndpointSettings, Role
from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.messaging.outcome import Accepted, Modified, Rejected, Released
from hubweir.amqp.messaging.terminus import Source, Target
from hubweir.amqp.security.protocol_header import AMQP_HEADER
from hubweir.amqp.transport import read_frames
from hubweir.amqp.transport.events import Closed, CreditGranted, DeliveriesReceived, SessionEnded, Settled
from hubweir.amqp.transport.performatives import Attach, Disposition, Flow
from hubweir.amqp.transport.read_frames import LEAST_ROWS, ROWS_LIMIT
from hubweir.amqp.transport.receiver_link import ReceiverLink
from hubweir.amqp.transport.sender_link import SenderLink
from hubweir.amqp.types.values import Symbol
from hubweir.kernels.tests.legal_bytes import compound
from hubweir.testing.endpoint_pair import Side
from hubweir.testing.frames import BEGIN, frame, raw, transfer, written
from hubweir.testing.served import feed, served


def test_a_read_costs_a_few_calls_not_one_for_each_delivery(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast path by its count: how often Python takes rows for 3,000 deliveries in one read."""
    calls = []
    whole = ReceiverLink.take_rows

    def counted(link: ReceiverLink, data: memoryview, rows: object, count: int) -> None:
        calls.append(count)
        whole(link, data, rows, count)

    monkeypatch.setattr(ReceiverLink, "take_rows", counted)
    side = served()
    feed(side, b"".join(transfer(number, b"x" * 20) for number in range(3_000)))
    assert sum(calls) == 3_000
    assert calls[0] <= 2 * LEAST_ROWS and max(calls) == ROWS_LIMIT and len(calls) <= 5
    assert sum(isinstance(event, DeliveriesReceived) for event in side.events) == 1
    calls.clear()
    feed(side, b"".join(transfer(number, b"x" * 20) for number in range(3_000, 3_900)))
    assert calls == [900]  # the read before has told how small the frames are


def test_empty_frames_between_transfers_cut_the_stretch_and_nothing_else() -> None:
    side = served()
    feed(side, transfer(0) + raw(b"") + transfer(1) + raw(b"", channel=9) + transfer(2))
    assert [entry.delivery_id for entry in side.deliveries()] == [0, 1, 2]
    assert sum(isinstance(event, DeliveriesReceived) for event in side.events) == 1


def test_nothing_is_read_behind_the_frame_that_ended_the_connection() -> None:
    side = served()
    feed(side, transfer(0) + raw(b"\x40") + transfer(1))
    assert [entry.delivery_id for entry in side.deliveries()] == [0]
    assert side.endpoint.is_closed


def settled_by(side: Side, begun: int, from_event: int) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
    """What a read reported of each delivery, and what was answered of each, in order."""
    reported = [
        (event.link.name, (event.first_id + place) % 2**32, event.outcome, event.settled)
        for event in side.events[from_event:]
        if isinstance(event, Settled)
        for place in range((event.last_id - event.first_id) % 2**32 + 1)
    ]
    answered = [
        (type(said), (said.first + place) % 2**32, said.state)
        for _, said in written(side.written[begun:])
        if isinstance(said, Disposition) and said.last is not None
        for place in range((said.last - said.first) % 2**32 + 1)
    ]
    return reported, answered


def dead_letter(reason: str) -> Rejected:
    """What clients say who put a message with the dead letters."""
    info = {Symbol("DeadLetterReason"): reason}
    return Rejected(error=AmqpError(condition=Symbol("com.microsoft:dead-letter"), description="", info=info))


DOWN = Attach(
    name="down", handle=0, role=True, rcv_settle_mode=1, source=Source(address="q"), target=Target(address="r")
)


def flow_of(handle: int) -> Flow:
    """Credit for 50 deliveries."""
    return Flow(
        next_incoming_id=0, incoming_window=2048, next_outgoing_id=0, outgoing_window=2048, handle=handle,
        link_credit=50, delivery_count=0,
    )  # fmt: skip


def two_receivers(*, host_answers: bool) -> Side:
    """Two links to receivers that settle second, with deliveries 0 to 39 unsettled, ten of each link in turn."""
    side = served(links=2, attach=DOWN)
    links = [side.link(f"down{handle}") for handle in range(2)]
    for handle, link in enumerate(links):
        assert isinstance(link, SenderLink)
        if host_answers:
            link.answer_by_host(lambda: Rejected(error=None))
        feed(side, frame(flow_of(handle)))
    for number in range(40):
        link = links[number // 10 % 2]
        assert isinstance(link, SenderLink)
        link.send(b"m", settled=False)
    side.drain()
    return side


@pytest.mark.parametrize("host_answers", [False, True])
@pytest.mark.parametrize("seed", range(60))
def test_dispositions_at_once_mean_what_they_mean_one_by_one(
    monkeypatch: pytest.MonkeyPatch, seed: int, host_answers: bool
) -> None:
    rng, frames, at = Random(seed), [], 0
    alike = rng.random() < 0.5
    often = 0 if alike else 0.1
    others = [Rejected(error=None), Modified(delivery_failed=True), dead_letter("late"), dead_letter("wrong")]
    for _ in range(rng.choice([1, 10, 60])):
        last = None if rng.random() < 0.8 else at + rng.choice([0, 1, 25])
        state = rng.choice([Accepted(), Accepted(), Accepted(), Released(), Modified(), None, *others])
        if alike:
            state = Accepted()
        frames.append(frame(Disposition(role=True, first=at, last=last, settled=rng.random() < often, state=state)))
        if rng.random() < 0.1:
            frames.append(raw(b""))
        at = (at + 1 if rng.random() < (0.3 if alike else 0.9) else rng.randrange(45)) % 45
    found = []
    for kernel in (read_frames.collect_dispositions, lambda *call: (0, 0, 0, 0)):
        monkeypatch.setattr(read_frames, "collect_dispositions", kernel)
        side = two_receivers(host_answers=host_answers)
        begun, from_event = len(side.written), len(side.events)
        feed(side, b"".join(frames))
        left = [
            link.unsettled_count for link in (side.link("down0"), side.link("down1")) if isinstance(link, SenderLink)
        ]
        reported, answered = settled_by(side, begun, from_event)
        # The order of what is said alike of different deliveries says nothing.
        found.append((sorted(map(repr, reported)), sorted(map(repr, answered)), left))
    assert found[0] == found[1]


def test_a_receiver_that_settles_each_delivery_costs_one_event_a_read() -> None:
    side = two_receivers(host_answers=True)
    from_event = len(side.events)
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=Accepted())) for number in range(30)))
    events = [(event.first_id, event.last_id) for event in side.events[from_event:] if isinstance(event, Settled)]
    assert events == [(0, 9), (10, 19), (20, 29)]


def test_a_receiver_that_settles_in_any_order_costs_as_little() -> None:
    side = two_receivers(host_answers=True)
    from_event, order = len(side.events), list(range(30))
    Random(3).shuffle(order)
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=Accepted())) for number in order))
    events = [(event.first_id, event.last_id) for event in side.events[from_event:] if isinstance(event, Settled)]
    assert events == [(0, 9), (10, 19), (20, 29)]


def test_a_receiver_that_abandons_or_dead_letters_each_delivery_costs_as_little() -> None:
    side = two_receivers(host_answers=True)
    from_event, abandoned = len(side.events), Modified(delivery_failed=True)
    said = [abandoned] * 15 + [dead_letter("late")] * 15
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=state)) for number, state in enumerate(said)))
    events = [
        (event.first_id, event.last_id, event.outcome)
        for event in side.events[from_event:]
        if isinstance(event, Settled)
    ]
    assert events == [
        (0, 9, abandoned), (10, 14, abandoned), (15, 19, dead_letter("late")), (20, 29, dead_letter("late")),
    ]  # fmt: skip


def test_a_receiver_that_settles_in_any_order_by_two_outcomes_costs_a_few_events() -> None:
    side = two_receivers(host_answers=True)
    from_event, order = len(side.events), list(range(20))
    Random(4).shuffle(order)
    said = [(number, Accepted() if number < 15 else Released()) for number in order]
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=state)) for number, state in said))
    events = [
        (event.first_id, event.last_id, event.outcome)
        for event in side.events[from_event:]
        if isinstance(event, Settled)
    ]
    assert events == [(0, 9, Accepted()), (10, 14, Accepted()), (15, 19, Released())]


def test_the_first_word_about_a_delivery_counts_whatever_else_is_said_in_the_read() -> None:
    side = two_receivers(host_answers=True)
    from_event, said = len(side.events), [(3, Released()), (2, Accepted()), (3, Accepted()), (4, Accepted())]
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=state)) for number, state in said))
    events = {event.first_id: event.outcome for event in side.events[from_event:] if isinstance(event, Settled)}
    assert events == {2: Accepted(), 3: Released(), 4: Accepted()}


def test_a_receiver_may_say_something_else_of_each_delivery() -> None:
    side = two_receivers(host_answers=True)
    from_event, said = len(side.events), [dead_letter(str(number)) for number in range(read_frames.STATES_LIMIT + 5)]
    feed(side, b"".join(frame(Disposition(role=True, first=number, state=state)) for number, state in enumerate(said)))
    events = [event for event in side.events[from_event:] if isinstance(event, Settled)]
    assert [(event.first_id, event.outcome) for event in events] == list(enumerate(said))


@pytest.mark.parametrize("place", [0, 1, 5])
@pytest.mark.parametrize("wrong", [b"\x45", b"\x00\x53\x27\xc0\x03\x01\x50\x07", b"\x00\x53\x25\xc0\x03\x01\xa1\x00"])
def test_a_state_that_is_none_ends_the_connection_behind_what_was_said_before_it(wrong: bytes, place: int) -> None:
    """What is behind it in the read is not heard, and what says the same as before it neither."""
    side = two_receivers(host_answers=True)
    from_event, abandoned = len(side.events), Modified(delivery_failed=True)
    frames = [frame(Disposition(role=True, first=number, state=abandoned)) for number in range(8)]
    frames[place] = raw(b"\x00\x53\x15" + compound(0xC0, [b"\x41", b"\x52" + bytes([place]), b"\x40", b"\x42", wrong]))
    feed(side, b"".join(frames))
    *events, last = side.events[from_event:]
    assert [(event.first_id, event.last_id) for event in events if isinstance(event, Settled)] == (
        [(0, place - 1)] if place else []
    )
    assert isinstance(last, Closed) and last.error is not None and last.error.condition == "amqp:decode-error"


def two_sessions() -> Side:
    """Three links to receivers that settle second, of two sessions: two on channel 0 and one on channel 5."""
    side = two_receivers(host_answers=True)
    feed(side, frame(BEGIN, channel=5) + frame(replace(DOWN, name="other"), channel=5))
    link = side.link("other")
    assert isinstance(link, SenderLink)
    link.answer_by_host(lambda: Rejected(error=None))
    link.accept()
    feed(side, frame(flow_of(0), channel=5))
    for _ in range(40):
        link.send(b"m", settled=False)
    side.drain()
    return side


@pytest.mark.parametrize("seed", range(60))
def test_dispositions_of_two_sessions_at_once_mean_what_they_mean_one_by_one(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, frames = Random(seed), []
    channels = rng.choice([[0, 5], [0, 5], [0] * 10 + [5] * 10 + [6]])
    for _ in range(rng.choice([2, 20, 60])):
        state = rng.choice([Accepted(), Accepted(), Released(), Modified(delivery_failed=True)])
        said = Disposition(role=True, first=rng.randrange(45), state=state)
        frames.append(frame(said, channel=rng.choice(channels)))
    found = []
    for kernel in (read_frames.collect_dispositions, lambda *call: (0, 0, 0, 0)):
        monkeypatch.setattr(read_frames, "collect_dispositions", kernel)
        side = two_sessions()
        begun, from_event = len(side.written), len(side.events)
        feed(side, b"".join(frames))
        reported, answered = settled_by(side, begun, from_event)
        ends = [event for event in side.events if isinstance(event, Closed | SessionEnded)]
        found.append((sorted(map(repr, reported)), sorted(map(repr, answered)), ends))
    assert found[0] == found[1]


def test_receivers_of_several_sessions_that_settle_in_turns_cost_as_little() -> None:
    side = two_sessions()
    from_event, said = len(side.events), []
    for number in range(10):
        for channel in (0, 5):
            said.append(frame(Disposition(role=True, first=number, state=Accepted()), channel=channel))
    feed(side, b"".join(said))
    events = [
        (event.link.name, event.first_id, event.last_id)
        for event in side.events[from_event:]
        if isinstance(event, Settled)
    ]
    assert events == [("down0", 0, 9), ("other", 0, 9)]


@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_channel_without_a_session_ends_the_connection_behind_what_was_said_before_it(place: int) -> None:
    side = two_sessions()
    from_event = len(side.events)
    frames = [
        frame(Disposition(role=True, first=number, state=Accepted()), channel=3 if number == place else 5)
        for number in range(8)
    ]
    feed(side, b"".join(frames))
    *events, last = side.events[from_event:]
    assert [(event.first_id, event.last_id) for event in events if isinstance(event, Settled)] == (
        [(0, place - 1)] if place else []
    )
    assert isinstance(last, Closed) and last.error is not None and "channel 3 " in last.error.description


@pytest.mark.parametrize("seed", range(60))
def test_flows_between_dispositions_mean_what_they_mean_one_by_one(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng, frames = Random(seed), []
    handles = rng.choice([[0], [0, 1], [0, 1, None], [0, 1] * 20 + [9]])
    for _ in range(rng.choice([2, 20, 60])):
        channel = rng.choice([0, 0, 0, 5])
        said: Flow | Disposition = Disposition(role=True, first=rng.randrange(45), state=Accepted())
        if rng.random() < 0.5:
            handle = rng.choice(handles) if channel == 0 else 0
            said = replace(
                flow_of(0), handle=handle, next_incoming_id=rng.choice([None, 3]),
                incoming_window=rng.choice([0, 2048]), delivery_count=rng.choice([None, 10]),
                link_credit=rng.choice([None, 0, 7, 50]), drain=rng.random() < 0.2, echo=rng.random() < 0.2,
            )  # fmt: skip
        frames.append(frame(said, channel=channel))
    found = []
    for kernel in (read_frames.collect_dispositions, lambda *call: (0, 0, 0, 0)):
        monkeypatch.setattr(read_frames, "collect_dispositions", kernel)
        side = two_sessions()
        begun, from_event = len(side.written), len(side.events)
        feed(side, b"".join(frames))
        reported, answered = settled_by(side, begun, from_event)
        granted = [event.link.name for event in side.events[from_event:] if isinstance(event, CreditGranted)]
        ends = [event.error for event in side.events if isinstance(event, Closed | SessionEnded)]
        flows = [said for _, said in written(side.written[begun:]) if isinstance(said, Flow)]
        links = [side.link(name) for name in ("down0", "down1", "other")]
        left = [(link.credit, link.drain, link.session.window.remote_window) for link in links if is_sender(link)]
        found.append((sorted(map(repr, reported)), sorted(map(repr, answered)), granted, ends, flows, left))
    assert found[0] == found[1]


def is_sender(link: object) -> TypeGuard[SenderLink]:
    return isinstance(link, SenderLink)


def test_flows_and_dispositions_of_many_links_in_turns_cost_one_call_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side, calls, whole = two_receivers(host_answers=True), [], read_frames.collect_dispositions

    def counted(*call: Any) -> tuple[int, int, int, int]:
        calls.append(whole(*call))
        return calls[-1]

    monkeypatch.setattr(read_frames, "collect_dispositions", counted)
    from_event = len(side.events)
    frames = [
        frame(Disposition(role=True, first=number, state=Accepted())) + frame(flow_of(number // 10 % 2))
        for number in range(15)
    ]
    feed(side, b"".join(frames))
    assert calls == [(30, 1, 0, 15)]
    settled = [(each.first_id, each.last_id) for each in side.events[from_event:] if isinstance(each, Settled)]
    assert settled == [(0, 9), (10, 14)]


@pytest.mark.parametrize("place", [1, 4])
def test_a_flow_for_a_link_that_is_none_ends_the_session_behind_what_was_said_before_it(place: int) -> None:
    side = two_receivers(host_answers=True)
    from_event = len(side.events)
    frames = [frame(Disposition(role=True, first=number, state=Accepted())) for number in range(8)]
    frames.insert(place, frame(flow_of(7)))
    feed(side, b"".join(frames))
    *events, last = side.events[from_event:]
    assert [(event.first_id, event.last_id) for event in events if isinstance(event, Settled)] == [(0, place - 1)]
    assert isinstance(last, SessionEnded) and last.error is not None and "handle 7 " in last.error.description


def test_a_flow_for_a_link_of_another_channel_ends_its_session_before_what_is_said_behind_it() -> None:
    side = two_sessions()
    from_event = len(side.events)
    answered = [frame(Disposition(role=True, first=number, state=Accepted()), channel=5) for number in range(6)]
    wrong = frame(flow_of(1), channel=5)  # that handle is of a link on channel 0
    feed(side, frame(flow_of(0)) + b"".join((*answered[:3], wrong, *answered[3:])))
    *events, last = side.events[from_event:]
    assert [(event.first_id, event.last_id) for event in events if isinstance(event, Settled)] == [(0, 2)]
    assert isinstance(last, SessionEnded) and last.error is not None and "handle 1 " in last.error.description


def test_dispositions_behind_our_close_are_dropped_whatever_their_channel() -> None:
    side = two_sessions()
    side.endpoint.close(None)
    side.drain()
    begun, from_event = len(side.written), len(side.events)
    feed(side, b"".join(frame(Disposition(role=True, first=0, state=Accepted()), channel=at) for at in (0, 3, 5)))
    assert (side.events[from_event:], side.written[begun:]) == ([], b"")


def test_a_disposition_that_ends_before_it_begins_ends_the_session_behind_those_before_it() -> None:
    side = two_receivers(host_answers=True)
    feed(
        side,
        frame(Disposition(role=True, first=0, state=Accepted()))
        + frame(Disposition(role=True, first=2, last=1, state=Accepted()))
        + frame(Disposition(role=True, first=3, state=Accepted())),
    )
    assert [(event.first_id, event.last_id) for event in side.events if isinstance(event, Settled)] == [(0, 0)]
    assert any(isinstance(event, SessionEnded) for event in side.events)


@pytest.mark.parametrize("channel", [5, 70])
def test_dispositions_on_a_channel_without_a_session_end_the_connection(channel: int) -> None:
    side = served()
    feed(side, frame(Disposition(role=True, first=0, state=Accepted()), channel=channel))
    assert side.endpoint.is_closed


def test_dispositions_that_come_when_the_session_or_the_connection_was_ended_here_are_dropped() -> None:
    for ends_session in (True, False):
        side = two_receivers(host_answers=True)
        if ends_session:
            side.endpoint.sessions[0].end()
        else:
            side.endpoint.close()
        from_event = len(side.events)
        feed(side, frame(Disposition(role=True, first=0, state=Accepted())))
        assert not side.endpoint.is_closed and side.events[from_event:] == []


def test_a_disposition_before_open_is_named_in_the_error() -> None:
    side = Side(Endpoint(Role.SERVER, replace(EndpointSettings("server"), sasl=False), now_ms=0), accepts=False)
    feed(side, AMQP_HEADER + frame(Disposition(role=True, first=0, state=Accepted())))
    (closed,) = side.events
    assert isinstance(closed, Closed) and closed.error is not None
    assert closed.error.description.startswith("disposition came before open")
