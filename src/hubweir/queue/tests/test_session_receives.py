"""Holders of sessions in groups: told together of what each is given, while the receive of each goes on."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from hubweir.amqp.types.encode import encode
from hubweir.errors import NOT_FOUND, CorruptStore, ServiceError
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.messaging_store.log import Refused
from hubweir.queue import session_receives
from hubweir.queue.fragment import FragmentReceiver, GivenMessages, ReceivedMessages
from hubweir.queue.message_reads import MessageReads
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.tests.conftest import Got, bodies, message, opened
from hubweir.queue.tests.session_bench import SessionBench

Shares = list[tuple[FragmentReceiver, list[Got]]]


class Group:
    """Whoever is told of messages of several holders. then: is called behind each telling."""

    def __init__(self, sessions: SessionBench) -> None:
        self.sessions = sessions
        self.told: list[Shares] = []
        self.answers: dict[str | None, list[Any]] = {}
        self.then: Any = lambda: None
        self.on_given = self._given  # one object: by that it is one group

    def _given(self, given: GivenMessages) -> None:
        shares, at = [], 0
        for receiver, count in zip(given.receivers, given.counts, strict=True):
            rows = given.rows[at * MESSAGE_WIDTH : (at + count) * MESSAGE_WIDTH]
            shares.append((receiver, opened(ReceivedMessages(bytes(given.run), rows))))
            at += count
        assert at * MESSAGE_WIDTH == len(given.rows)
        self.told.append(shares)
        self.then()

    def accept(self, *names: str, max_count: int = 10, max_bytes: int = 1 << 20) -> list[FragmentReceiver]:
        """Hold these sessions, and wait for messages in each."""
        receivers = [self.sessions.accept(name, on_given=self.on_given) for name in names]
        for receiver in receivers:
            self.wait(receiver, max_count=max_count, max_bytes=max_bytes)
        return receivers

    def wait(self, receiver: FragmentReceiver, *, max_count: int = 10, max_bytes: int = 1 << 20) -> None:
        its = self.answers.setdefault(receiver.session_id, [])
        self.sessions.fragment.receive(receiver, max_count=max_count, max_bytes=max_bytes, on_done=its.append)

    def heard(self) -> list[dict[str, list[str]]]:
        """What it was told since this was last asked, by session."""
        told, self.told = self.told, []
        return [{receiver.session_id or "": bodies(got) for receiver, got in shares} for shares in told]

    def over(self) -> dict[str | None, list[list[str]]]:
        """The receives that were answered since this was last asked, with what."""
        found = {name: [bodies(opened(each)) for each in its] for name, its in self.answers.items() if its}
        for its in self.answers.values():
            its.clear()
        return found


@pytest.fixture
def sessions() -> SessionBench:
    return SessionBench()


@pytest.fixture
def group(sessions: SessionBench) -> Group:
    return Group(sessions)


def enqueue(sessions: SessionBench, *texts: str) -> None:
    """Messages in one run; the first letter of each names its session."""
    sessions.enqueue(*(message(text, session=text[0]) for text in texts))


def test_holders_of_a_group_are_told_together_and_their_receives_go_on(sessions: SessionBench, group: Group) -> None:
    """The log is read for the first holder of a turn alone; what that read has is at hand for all others."""
    other = Group(sessions)
    other.accept("z")
    receivers = []
    for name in "abc":
        receivers += group.accept(name)
        sessions.run_for(700)
    enqueue(sessions, "z1", "a1", "b1", "a2", "c1")
    [shares] = group.told
    assert [[each.locked_until_ms for each in got] for _, got in shares] == [
        [receivers[0].locked_until_ms] * 2, [receivers[1].locked_until_ms], [receivers[2].locked_until_ms]
    ]  # fmt: skip
    assert len({receiver.locked_until_ms for receiver in receivers}) == 3
    assert sessions.settle([each for _, got in shares for each in got]) == [SETTLED] * 4
    assert (group.heard(), other.heard()) == ([{"a": ["a1", "a2"], "b": ["b1"], "c": ["c1"]}], [{"z": ["z1"]}])
    enqueue(sessions, "b2")
    assert (group.heard(), group.over(), other.over()) == ([{"b": ["b2"]}], {}, {})


def test_a_receive_is_over_when_as_many_came_as_it_asked_for(sessions: SessionBench, group: Group) -> None:
    _, first, _ = group.accept("z", "a", "b", max_count=2)
    enqueue(sessions, "z1", "a1", "b1")
    assert (group.heard(), group.over()) == ([{"z": ["z1"]}, {"a": ["a1"], "b": ["b1"]}], {})
    enqueue(sessions, "a2", "a3")
    assert (group.heard(), group.over()) == ([{"a": ["a2"]}], {"a": [[]]})
    enqueue(sessions, "z2", "b2")
    assert (group.heard(), group.over()) == ([{"z": ["z2"]}, {"b": ["b2"]}], {"z": [[]], "b": [[]]})
    group.wait(first)
    sessions.run_for(1)
    assert (group.heard(), group.over()) == ([{"a": ["a3"]}], {})
    group.accept("c", max_count=2)
    enqueue(sessions, "c1", "c2")
    assert (group.heard(), group.over()) == ([{"c": ["c1", "c2"]}], {"c": [[]]})


def test_a_receive_is_over_when_its_bytes_are_used_up_or_what_is_ready_does_not_fit(
    sessions: SessionBench, group: Group
) -> None:
    """Else a holder that takes nothing would be given without end, or one with a message that is ready would wait."""
    [receiver] = group.accept("a", max_bytes=1_000)
    enqueue(sessions, "a" + "1" * 600, "a" + "2" * 600)
    assert [[len(each) for each in told["a"]] for told in group.heard()] == [[601]]
    assert group.over() == {"a": [[]]}
    group.wait(receiver, max_bytes=2_000)
    sessions.run_for(1)
    assert [[len(each) for each in told["a"]] for told in group.heard()] == [[601]]
    assert group.over() == {}
    enqueue(sessions, "a" + "3" * 1_400)
    assert [[len(each) for each in told["a"]] for told in group.heard()] == [[1_401]], "the first always goes"
    assert group.over() == {"a": [[]]}


def test_a_cancelled_receive_is_answered_and_nothing_more_is_given(sessions: SessionBench, group: Group) -> None:
    [receiver] = group.accept("a")
    enqueue(sessions, "a1")
    sessions.fragment.cancel_receive(receiver)
    assert (group.heard(), group.over()) == ([{"a": ["a1"]}], {"a": [[]]})
    enqueue(sessions, "a2")
    assert (group.heard(), group.over()) == ([], {})
    group.wait(receiver)
    sessions.run_for(1)
    assert group.heard() == [{"a": ["a2"]}]


def test_a_receive_that_another_group_cancels_in_the_turn_is_over_behind_what_it_is_given(
    sessions: SessionBench, group: Group
) -> None:
    other = Group(sessions)
    group.accept("a")
    [cancelled] = other.accept("b")
    group.then = lambda: sessions.fragment.cancel_receive(cancelled)
    enqueue(sessions, "a1", "b1")
    assert (group.heard(), other.heard(), other.over()) == ([{"a": ["a1"]}], [{"b": ["b1"]}], {"b": [[]]})
    enqueue(sessions, "b2")
    assert other.heard() == []


def test_a_holder_that_another_group_closes_in_the_turn_takes_nothing(sessions: SessionBench, group: Group) -> None:
    other = Group(sessions)
    group.accept("a")
    closed, _ = other.accept("b", "c")
    group.then = lambda: sessions.fragment.close_receiver(closed)
    enqueue(sessions, "a1", "b1", "c1")
    assert (other.heard(), other.over()) == ([{"c": ["c1"]}], {"b": [[]]})
    [again] = sessions.receive(sessions.accept("b"))
    assert (again.body, again.deliveries) == (b"b1", 0)


def test_who_asks_again_within_the_telling_is_not_answered_for_the_receive_before(
    sessions: SessionBench, group: Group
) -> None:
    [receiver] = group.accept("a", max_count=1)

    def ask_again() -> None:
        group.then = lambda: None
        sessions.fragment.cancel_receive(receiver)
        group.wait(receiver)

    group.then = ask_again
    enqueue(sessions, "a1")
    assert (group.heard(), group.over()) == ([{"a": ["a1"]}], {"a": [[]]})
    enqueue(sessions, "a2")
    assert (group.heard(), group.over()) == ([{"a": ["a2"]}], {})


def test_receives_that_do_not_wait_are_answered_with_their_messages(sessions: SessionBench, group: Group) -> None:
    receivers = [sessions.accept(name, on_given=group.on_given) for name in "abcd"]
    group.wait(receivers[3])
    enqueue(sessions, "a1", "b1", "c1")
    for its in (["a1"], ["b1"], ["c1"]), ([], [], []):
        answers: list[Any] = []
        for receiver in receivers[:3]:
            sessions.fragment.receive(receiver, max_count=5, max_bytes=1 << 20, waits=False, on_done=answers.append)
        sessions.run_for(1)
        assert [bodies(opened(each)) for each in answers] == list(its)
    assert (group.told, group.over()) == ([], {})


def test_messages_that_have_to_be_read_or_were_changed_are_told_of_apart(sessions: SessionBench, group: Group) -> None:
    """The first session's message lies on the disk alone, the third one's was changed by a receiver."""
    enqueue(sessions, "a1")
    changed = sessions.accept("c")
    enqueue(sessions, "c1")
    details = SettleDetails(properties=encode({"k": "v"}))
    assert sessions.settle(sessions.receive(changed), SettleOutcome.ABANDON, details=details) == [SETTLED]
    sessions.close(changed)
    for number in range(40):
        enqueue(sessions, "z" + f"{number}" * 600)
    enqueue(sessions, "b1", "d1")
    group.accept("a", "b", "c", "d")
    sessions.run_for(500)
    [own] = [got for told in group.told for receiver, got in told if receiver.session_id == "c"]
    assert [(each.body, each.properties) for each in own] == [(b"c1", {"k": "v"})]
    heard = group.heard()
    assert {name: texts for told in heard for name, texts in told.items()} == {
        "a": ["a1"], "b": ["b1"], "c": ["c1"], "d": ["d1"],
    }  # fmt: skip
    assert all(len(told) == 1 for told in heard if "a" in told or "c" in told)
    assert group.over() == {}


def test_what_comes_while_a_holders_messages_are_read_is_given_behind_them(
    sessions: SessionBench, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not stir the holder, who has to look again then: the receive is over, and the next one finds it."""
    [receiver] = group.accept("a")
    held: list[Any] = []
    monkeypatch.setattr(MessageReads, "begin", lambda *given: held.append(given))
    enqueue(sessions, "a1")
    monkeypatch.undo()
    enqueue(sessions, "a2")
    assert (group.heard(), group.over(), len(held)) == ([], {}, 1)
    MessageReads.begin(*held[0])
    assert (group.heard(), group.over()) == ([{"a": ["a1"]}], {"a": [[]]})
    group.wait(receiver)
    sessions.run_for(1)
    assert (group.heard(), group.over()) == ([{"a": ["a2"]}], {})


def test_a_fragment_that_is_lost_while_a_holders_messages_are_read_is_freed() -> None:
    """What the read ends with names the holder: the collector has to see that."""
    sessions = SessionBench()
    enqueue(sessions, "a1")
    for number in range(40):
        enqueue(sessions, "z" + f"{number}" * 600)
    Group(sessions).accept("a")
    sessions.run_for(0)
    assert sessions.fragment.core.reads.least_index is not None, "nothing is read"
    lost = weakref.ref(sessions.fragment)
    del sessions
    gc.collect()
    assert lost() is None


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_receive_whose_messages_are_lost_goes_on_unless_it_was_cancelled(
    sessions: SessionBench, group: Group, monkeypatch: pytest.MonkeyPatch, is_cancelled: bool
) -> None:
    """One that was cancelled would get nothing, and nobody could ask anew."""
    [receiver] = group.accept("a")
    held: list[Any] = []
    monkeypatch.setattr(MessageReads, "begin", lambda reads, indexes, *given: held.append((indexes[0], given[-1])))
    enqueue(sessions, "a1")
    monkeypatch.undo()
    if is_cancelled:
        sessions.fragment.cancel_receive(receiver)
    assert group.over() == {}
    [(index, on_read)] = held
    on_read(Refused(CorruptStore("damaged", first_index=index, resume_index=index + 1)))
    assert group.over() == ({"a": [[]]} if is_cancelled else {})
    if is_cancelled:
        group.wait(receiver)
    enqueue(sessions, "a2")
    assert (group.heard(), group.over()) == ([{"a": ["a2"]}], {})


def test_messages_of_a_holder_that_closes_are_all_there_again(sessions: SessionBench, group: Group) -> None:
    [receiver] = group.accept("a")
    enqueue(sessions, "a1", "a2", "a3")
    sessions.close(receiver)
    sessions.run_for(100)
    assert [(each.body, each.deliveries) for each in sessions.receive(sessions.accept("a"))] == [
        (b"a1", 1), (b"a2", 1), (b"a3", 1),
    ]  # fmt: skip


def test_a_large_group_is_told_in_portions(
    sessions: SessionBench, group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    group.accept("z", "a", "b", "c", "e", "d")
    enqueue(sessions, "a0")
    size = sessions.fragment.counts().size_bytes
    monkeypatch.setattr(session_receives, "TOGETHER_BYTES", 2 * size)
    group.heard()
    enqueue(sessions, "z1", "a1", "b1", "c1", "e1", "d1", "d2", "d3")
    assert group.heard() == [
        {"z": ["z1"]}, {"a": ["a1"]}, {"b": ["b1"], "c": ["c1"]}, {"e": ["e1"]}, {"d": ["d1", "d2", "d3"]},
    ]  # fmt: skip


def test_the_end_of_the_fragment_within_a_telling_refuses_each_receive_once(
    sessions: SessionBench, group: Group
) -> None:
    other, error = Group(sessions), ServiceError(NOT_FOUND, "gone")
    group.accept("a")
    other.accept("b")
    group.then = lambda: sessions.fragment.end(error, sessions.times())
    enqueue(sessions, "a1", "b1")
    assert (group.answers, other.answers) == ({"a": [error]}, {"b": [error]})
    assert other.told == []


def test_a_session_that_is_closed_frees_what_was_given_before_a_message_that_came_again(
    sessions: SessionBench, group: Group
) -> None:
    """The last that it is given is not the last that it has."""
    [receiver] = group.accept("a", max_count=3)
    enqueue(sessions, "a1", "a2")
    [[(_, got)]] = group.told
    assert sessions.settle(got[:1], SettleOutcome.ABANDON) == [SETTLED]
    assert group.heard() == [{"a": ["a1", "a2"]}, {"a": ["a1"]}]
    sessions.close(receiver)
    assert bodies(sessions.receive(sessions.accept("a"), wait_ms=10)) == ["a1", "a2"]
