"""hosted_fragment.py: a fragment at its broker, on a store in memory: receivers, owners, turns, deadlines, its end.

Long because one bench stands for whoever sends, receives and ends.
"""

from __future__ import annotations

from array import array
from typing import TypeVar

import pytest
from msgspec.structs import replace

from hubweir.broker.broker import Broker
from hubweir.broker.commands.command import Answer, Command, Owner, Push
from hubweir.broker.commands.fragment import (
    AskFragmentInfo,
    CancelReceive,
    ChangeFragment,
    CloseReceiver,
    CreateFragment,
    DeleteFragment,
    EnqueueMessages,
    FragmentInfo,
    GiveUpSession,
    MessagesEnqueued,
    MessagesGiven,
    MessagesReceived,
    MessagesSettled,
    OpenFragment,
    OpenReceiver,
    ReceiveMessages,
    ReceiverOpened,
    RenewSession,
    SessionLost,
    SettleMessages,
)
from hubweir.broker.commands.process import CloseOwner, Done, Refusal
from hubweir.broker.hosted_fragment import HostedFragment
from hubweir.broker.retention_sweep import SWEEP_MS
from hubweir.counters import Counters
from hubweir.errors import (
    NOT_FOUND,
    RESOURCE_LIMIT,
    SESSION_CANNOT_BE_LOCKED,
    SESSION_LOCK_LOST,
    STORE_OFFLINE,
    TIMED_OUT,
)
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.queue.fragment import Fragment, ReceivedMessages, Times
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from hubweir.queue.tests.conftest import Got, message, opened, run_of
from hubweir.testing.memory_faults import Fault
from hubweir.testing.simulated_env import SimulatedEnv

A = TypeVar("A", bound=Answer)
LOG, OTHER = "a" * 32, "b" * 32
LOCK_MS = 10_000
ONE, TWO, PROCESS = Owner(1, 1), Owner(1, 2), Owner(1, -1)


class FragmentBench:
    """A broker with the fragment of the queue `orders`, and what it said unasked."""

    def __init__(self, env: SimulatedEnv | None = None) -> None:
        self.env = env or SimulatedEnv(11)
        self.counters = Counters()
        self.broker = Broker(self.env, MessagingStore.open(self.env, "store-0"), self.counters)
        self.pushed: list[Push] = []
        self.broker.on_push = self.pushed.append
        self.broker.start()

    def create(self, log_id: str = LOG, **settings: object) -> None:
        told = FragmentSettings(**{"lock_duration_ms": LOCK_MS, **settings})  # type: ignore[arg-type]
        assert self.ask(CreateFragment(log_id, "orders", told), Done) == Done()

    def begin(self, command: Command) -> list[Answer]:
        """Its answers: one at most, maybe later."""
        answers: list[Answer] = []
        self.broker.submit(command, answers.append)
        self.env.run_for(50)
        return answers

    def ask(self, command: Command, kind: type[A]) -> A:
        answers = self.begin(command)
        for _ in range(40):  # a log is opened or removed in a moment
            if not answers:
                self.env.run_for(50)
        [answer] = answers
        assert isinstance(answer, kind), answer
        return answer

    def send(self, *bodies: str, session: str | None = None) -> MessagesEnqueued:
        messages = [message(body, session=session) for body in bodies]
        command = EnqueueMessages(LOG, run_of(*messages), len(messages), sum(map(len, messages)))
        return self.ask(command, MessagesEnqueued)

    def open(self, owner: Owner = ONE, *, mode: ReceiveMode = ReceiveMode.PEEK_LOCK) -> int:
        return self.ask(OpenReceiver(LOG, owner, SubQueue.MAIN, mode), ReceiverOpened).receiver_id

    def accept(self, owner: Owner, session_id: str | None, *, wait_ms: int = 0) -> list[Answer]:
        mode = ReceiveMode.PEEK_LOCK
        return self.begin(OpenReceiver(LOG, owner, SubQueue.MAIN, mode, True, session_id, wait_ms))

    def receive(self, receiver_id: int, count: int = 10) -> list[Answer]:
        return self.begin(ReceiveMessages(LOG, receiver_id, count, 1 << 20))

    def info(self) -> FragmentInfo:
        return self.ask(AskFragmentInfo(LOG), FragmentInfo)

    def stop(self) -> None:
        stopped: list[bool] = []
        self.broker.stop(lambda: stopped.append(True))
        self.env.run_for(1_000)
        assert stopped == [True]


def got(answers: list[Answer]) -> list[Got]:
    """The messages of a receive that was answered."""
    [answer] = answers
    assert isinstance(answer, MessagesReceived), answer
    return opened(ReceivedMessages(answer.run, array("q", answer.rows)))


def bodies(answers: list[Answer]) -> list[bytes]:
    return [each.body for each in got(answers)]


def given(bench: FragmentBench) -> list[tuple[Owner, dict[int, list[bytes]]]]:
    """What was pushed since this was last asked: whose receivers got which messages."""
    found: list[tuple[Owner, dict[int, list[bytes]]]] = []
    for push in bench.pushed:
        assert isinstance(push, MessagesGiven) and push.log_id == LOG
        its = [each.body for each in opened(ReceivedMessages(push.run, array("q", push.rows)))]
        receivers = array("q", push.receivers)
        shares, at = {}, 0
        for receiver_id, count in zip(receivers[: len(receivers) // 2], receivers[len(receivers) // 2 :], strict=True):
            shares[receiver_id], at = its[at : at + count], at + count
        assert at == len(its)
        found.append((push.owner, shares))
    bench.pushed.clear()
    return found


def refusal(answers: list[Answer]) -> Refusal:
    [answer] = answers
    assert isinstance(answer, Refusal), answer
    return answer


def hosted(bench: FragmentBench) -> HostedFragment:
    [found] = [each for each in bench.broker._residents if each.log.log_id == LOG]
    assert isinstance(found, HostedFragment)
    return found


@pytest.fixture
def bench() -> FragmentBench:
    bench = FragmentBench()
    bench.create()
    return bench


def test_what_is_enqueued_is_numbered_counted_and_received(bench: FragmentBench) -> None:
    assert bench.info().accessed_at_ms is None
    assert bench.send("a", "b") == MessagesEnqueued(1, 3)
    assert bench.send("c") == MessagesEnqueued(3, 4)
    assert bench.counters["broker.messages_enqueued"] == 3
    assert bench.counters["broker.bytes_enqueued"] == 3 * len(message("a"))
    assert bodies(bench.receive(bench.open(), 2)) == [b"a", b"b"]
    info = bench.info()
    assert (info.active, info.accessed_at_ms is None) == (3, False)


def test_what_the_log_refuses_is_counted_and_what_is_over_the_size_is_told_so(bench: FragmentBench) -> None:
    assert bench.ask(ChangeFragment(LOG, FragmentSettings(max_size_bytes=10)), Done) == Done()
    over = EnqueueMessages(LOG, run_of(message("x")), 1, 1)
    assert refusal(bench.begin(over)).condition is RESOURCE_LIMIT
    bench.ask(ChangeFragment(LOG, FragmentSettings()), Done)
    bench.env.files.plan(Fault.SYNC_EIO)
    assert refusal(bench.begin(EnqueueMessages(LOG, run_of(message("x")), 1, 1)))
    assert bench.counters["broker.enqueues_refused"] == 1
    assert bench.counters["broker.messages_enqueued"] == 0


def test_receivers_have_ids_of_their_own_also_over_the_end_of_their_fragment(bench: FragmentBench) -> None:
    first = bench.open()
    bench.ask(DeleteFragment(LOG), Done)
    bench.create()
    second = bench.open()
    assert second != first
    assert bench.begin(CloseReceiver(LOG, first)) == [Done()]
    told = refusal(bench.receive(first))
    assert (told.condition, told.text) == (
        NOT_FOUND, f"receiver {first} is not open: it was closed, or its owner was",
    )  # fmt: skip
    bench.send("x")
    assert bodies(bench.receive(second)) == [b"x"]


def test_a_receive_waits_for_a_message_or_is_cancelled_and_answered_without_any(bench: FragmentBench) -> None:
    receiver_id = bench.open()
    waiting = bench.receive(receiver_id)
    bench.env.run_for(60_000)
    assert waiting == []
    bench.send("late")
    assert bodies(waiting) == [b"late"]
    waiting = bench.receive(receiver_id)
    assert bench.begin(CancelReceive(LOG, receiver_id)) == [Done()]
    assert bodies(waiting) == []
    assert bodies(bench.begin(ReceiveMessages(LOG, receiver_id, 10, 1 << 20, waits=False))) == []


def test_the_end_of_a_connection_closes_its_receivers_and_no_others(bench: FragmentBench) -> None:
    ended, stays = bench.open(ONE), bench.open(TWO)
    waiting = bench.receive(ended)
    bench.ask(CloseOwner(ONE), Done)
    assert bodies(waiting) == []
    assert refusal(bench.receive(ended)).condition is NOT_FOUND
    bench.send("x")
    assert bodies(bench.receive(stays)) == [b"x"]
    bench.ask(CloseOwner(PROCESS), Done)
    assert refusal(bench.receive(stays)).condition is NOT_FOUND


def test_a_lock_outlives_its_receiver_and_ends_by_the_clock_without_another_command(bench: FragmentBench) -> None:
    bench.send("x")
    first = bench.open()
    [before] = got(bench.receive(first))
    bench.ask(CloseReceiver(LOG, first), Done)
    waiting = bench.receive(bench.open())
    bench.env.run_for(LOCK_MS - 1_000)
    assert waiting == []
    bench.env.run_for(1_100)
    [again] = got(waiting)
    assert (again.number, before.deliveries, again.deliveries) == (1, 0, 1)
    codes = bench.ask(SettleMessages(LOG, before.token + again.token, SettleOutcome.COMPLETE), MessagesSettled).codes
    assert codes == bytes((1, 0))
    assert bench.info().active == 0


class TestSessions:
    """Of a fragment that requires them."""

    @pytest.fixture
    def bench(self) -> FragmentBench:
        bench = FragmentBench()
        bench.create(requires_session=True)
        return bench

    def test_a_session_is_granted_when_there_is_one_and_refused_when_its_time_is_over(
        self, bench: FragmentBench
    ) -> None:
        waiting, impatient = bench.accept(ONE, None, wait_ms=60_000), bench.accept(TWO, None, wait_ms=1_000)
        bench.env.run_for(2_000)
        assert waiting == []
        assert refusal(impatient).condition is TIMED_OUT
        bench.send("x", session="s")
        [granted] = waiting
        assert isinstance(granted, ReceiverOpened)
        assert granted.session_id == "s"
        assert refusal(bench.accept(TWO, "s")).condition is SESSION_CANNOT_BE_LOCKED
        assert not hosted(bench)._waiting  # a wait that is decided is nobody's to end

    def test_a_wait_that_is_given_up_is_answered_and_gets_no_session_and_others_wait_on(
        self, bench: FragmentBench
    ) -> None:
        opening = OpenReceiver(LOG, ONE, SubQueue.MAIN, ReceiveMode.PEEK_LOCK, True, None, 60_000)
        first, second, unnamed = (bench.begin(replace(opening, wait=name)) for name in ("one", "two", ""))
        bench.ask(GiveUpSession(LOG, "one"), Done)
        assert refusal(first).condition is TIMED_OUT
        bench.send("x", session="s")
        assert [type(each) for each in second] == [ReceiverOpened]
        bench.ask(GiveUpSession(LOG, "two"), Done)  # it has its session: too late
        bench.receive(second[0].receiver_id)
        assert given(bench) == [(ONE, {second[0].receiver_id: [b"x"]})]
        assert unnamed == []

    def test_the_end_of_a_connection_ends_its_wait_and_frees_its_session(self, bench: FragmentBench) -> None:
        waiting = bench.accept(ONE, None, wait_ms=60_000)
        bench.ask(CloseOwner(ONE), Done)
        assert refusal(waiting).condition is TIMED_OUT
        bench.send("x", session="s")
        [granted] = bench.accept(TWO, None, wait_ms=1_000)
        assert isinstance(granted, ReceiverOpened)
        bench.ask(CloseOwner(TWO), Done)
        [granted] = bench.accept(ONE, "s")
        assert isinstance(granted, ReceiverOpened)

    def test_receivers_of_one_owner_are_given_their_messages_together(self, bench: FragmentBench) -> None:
        """And are answered without any, once they have as many as they asked for."""
        ids: dict[str, int] = {}
        for name in "zabc":
            [accepted] = bench.accept(TWO if name == "z" else ONE, name)
            assert isinstance(accepted, ReceiverOpened)
            ids[name] = accepted.receiver_id
        answers = {name: bench.receive(receiver_id, count=2) for name, receiver_id in ids.items()}
        messages = [message(text, session=text[0]) for text in ("z1", "a1", "b1", "c1", "b2")]
        bench.ask(EnqueueMessages(LOG, run_of(*messages), 5, sum(map(len, messages))), MessagesEnqueued)
        bench.env.run_for(50)
        assert given(bench) == [
            (TWO, {ids["z"]: [b"z1"]}),
            (ONE, {ids["a"]: [b"a1"], ids["b"]: [b"b1", b"b2"], ids["c"]: [b"c1"]}),
        ]
        assert {name: len(its) for name, its in answers.items()} == {"z": 0, "a": 0, "b": 1, "c": 0}
        assert bodies(answers["b"]) == []
        assert hosted(bench)._groups.keys() == {ONE, TWO}
        bench.ask(CloseOwner(ONE), Done)
        assert hosted(bench)._groups.keys() == {TWO}
        assert [len(its) for its in answers.values()] == [0, 1, 1, 1]

    def test_a_session_whose_lock_ends_is_pushed_to_its_owner_and_its_receiver_is_gone(
        self, bench: FragmentBench
    ) -> None:
        [granted] = bench.accept(ONE, "s")
        assert isinstance(granted, ReceiverOpened)
        bench.env.run_for(LOCK_MS // 2)
        bench.begin(RenewSession(LOG, "s"))
        bench.env.run_for(LOCK_MS - 1_000)
        assert not bench.pushed
        bench.env.run_for(1_100)
        [lost] = bench.pushed
        assert isinstance(lost, SessionLost)
        assert (lost.owner, lost.log_id, lost.receiver_id) == (ONE, LOG, granted.receiver_id)
        assert lost.condition is SESSION_LOCK_LOST
        assert refusal(bench.receive(granted.receiver_id)).condition is NOT_FOUND


def test_the_sweep_of_its_broker_maintains_it(bench: FragmentBench, monkeypatch: pytest.MonkeyPatch) -> None:
    maintained: list[Fragment] = []
    monkeypatch.setattr(Fragment, "maintain", lambda each, times: maintained.append(each))
    bench.env.run_for(2 * SWEEP_MS)
    assert set(maintained) == {hosted(bench).fragment}


def test_the_end_of_a_fragment_tells_whoever_waits_in_the_words_that_clients_match(bench: FragmentBench) -> None:
    waiting = bench.receive(bench.open())
    bench.ask(DeleteFragment(LOG), Done)
    told = refusal(waiting)
    assert told.condition is NOT_FOUND
    assert "The messaging entity 'orders' could not be found" in told.text
    bench.env.run_for(LOCK_MS)


def test_a_broker_that_stops_refuses_whoever_waits_and_another_one_finds_messages_and_no_receivers(
    bench: FragmentBench,
) -> None:
    bench.send("held", "free")
    receiver_id = bench.open()
    [held] = got(bench.receive(receiver_id, 1))
    other = bench.open(TWO)
    bodies(bench.receive(other, 1))
    waiting = bench.receive(other)
    bench.stop()
    assert refusal(waiting).condition is STORE_OFFLINE
    again = FragmentBench(bench.env)
    again.ask(OpenFragment(LOG, "orders", FragmentSettings(lock_duration_ms=LOCK_MS)), Done)
    assert refusal(again.receive(receiver_id)).condition is NOT_FOUND
    assert again.ask(SettleMessages(LOG, held.token, SettleOutcome.COMPLETE), MessagesSettled).codes == b"\1"
    assert [(each.body, each.deliveries) for each in got(again.receive(again.open()))] == [(b"held", 1), (b"free", 1)]


def test_a_fault_in_a_turn_stops_its_log_and_no_other(bench: FragmentBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.create(OTHER)

    fragment, plain = hosted(bench).fragment, Fragment.turn

    def turn(each: Fragment, times: Times) -> None:
        if each is fragment:
            raise ZeroDivisionError("a defect")
        plain(each, times)

    monkeypatch.setattr(Fragment, "turn", turn)
    run = run_of(message("z"))
    assert bench.ask(EnqueueMessages(OTHER, run, 1, 1), MessagesEnqueued) == MessagesEnqueued(1, 2)
    bench.begin(EnqueueMessages(LOG, run_of(message("x")), 1, 1))
    monkeypatch.undo()
    assert "a defect" in refusal(bench.begin(EnqueueMessages(LOG, run_of(message("y")), 1, 1))).text
    run = run_of(message("z"))
    assert bench.ask(EnqueueMessages(OTHER, run, 1, 1), MessagesEnqueued) == MessagesEnqueued(2, 3)


def test_other_settings_change_when_its_log_answers(bench: FragmentBench) -> None:
    assert hosted(bench).log.durability is Durability.DURABLE
    bench.ask(ChangeFragment(LOG, FragmentSettings(is_express=True)), Done)
    assert hosted(bench).log.durability is Durability.RELAXED
