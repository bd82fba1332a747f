"""A queue, or a topic with subscriptions, in a simulated world: random clients, random faults, checked histories.

Each place from which messages are received is a `View` with a history of its own (hubweir.testing.message_history):
a queue is one, each subscription of a topic is one. Clients send, receive, settle, hold sessions and set their states,
schedule, cancel, send ids again; meanwhile calls of the disk fail, processes and machines end before any call of it,
and clocks jump. After the last life everything comes to rest, and what is left is held against the histories.

Long because a world is one thing: what its clients do, and what they are told.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from hubweir.errors import CorruptStore, ServiceError, StoreError
from hubweir.kernels.contract import MESSAGE_WIDTH
from hubweir.messaging_store.log import Refused
from hubweir.queue.fragment import FragmentReceiver, GivenMessages, NumberRange, OnGiven, ReceivedMessages
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import SubQueue
from hubweir.queue.tests.conftest import DELETE, PEEK_LOCK, Got, QueueBench, message, opened, run_of
from hubweir.testing.answers import answered
from hubweir.testing.history_values import SeenHold, SeenPlace, Violation
from hubweir.testing.memory_faults import Killed, Plan, PowerCut
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.message_history import MessageHistory, SeenAnswer, SeenOutcome
from hubweir.testing.simulated_env import SimulatedEnv
from hubweir.topic.tests.topic_bench import TopicBench, sql
from tests.simulation.log_world import INTERLEAVED, plan_a_fault

LOCK_MS = 5_000
WINDOW_MS = 20_000
IDS = 6
SESSIONS = ("a", "b")
GROUPED = (*SESSIONS, "c", "d")  # the first one that is told in a turn is told alone
CHANGES = bytes.fromhex("c107 02 a10161 a10162")  # {"a": "b"}
MANY_BYTES = 1 << 20
# Longer than anything takes here, so that a lock's time tells by which clock it was given.
JUMPS_MS = (600_000, 86_400_000)


@dataclass(frozen=True, slots=True)
class Asked:
    """A receive that is not answered. tick: of the history, when it was asked for, or given messages last."""

    tick: int
    at_ms: int
    most: int


@dataclass(eq=False)
class View:
    """One place to receive from. name: of the subscription, "" of a queue. tokens: of locks, the newest last.

    groups: what holders of sessions may be accepted with, to be told of messages together; None: in no group.
    """

    name: str
    history: MessageHistory
    settings: FragmentSettings
    only_odd: bool = False
    tokens: list[bytes] = field(default_factory=list)
    receivers: list[FragmentReceiver] = field(default_factory=list)
    holds: dict[FragmentReceiver, SeenHold] = field(default_factory=dict)
    asked: dict[FragmentReceiver, Asked] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)  # deferred ones that are asked for
    groups: list[OnGiven | None] = field(default_factory=lambda: [None])


class FragmentWorld:
    """A seeded history. `run` plays it and raises Violation; is_topic: of a topic with three subscriptions."""

    def __init__(self, seed: int, *, is_topic: bool = False) -> None:
        self.random = Random(f"{'topic' if is_topic else 'queue'} world {seed}")
        # Draws of its own, so that the others of a seed are as they were. In half of the worlds holders are in groups.
        self._grouping = Random(f"groups {seed}")
        self.is_grouping = self._grouping.random() < 0.5
        self.files = MemoryFiles(f"{seed}")
        self.env_trace = hashlib.sha256()
        self.has_bad_clocks = self.random.random() < 0.25
        self.has_ids = self.random.random() < 0.4
        self.sends_later = self.random.random() < 0.4
        self.passed_ms = 0  # in earlier lives
        self.life = self.groups = self.messages = self.values = 0
        self.next_number = 1
        self.scheduled: dict[int, str] = {}
        self.faults: list[Exception] = []
        self.plan: Plan | None = None
        self.views: list[View] = []
        env = SimulatedEnv(f"{seed}", files=self.files, interleaved=self.random.choice(INTERLEAVED))
        settings = self._settings(requires_session=not is_topic and self.random.random() < 0.5)
        self.bench = (TopicBench if is_topic else QueueBench)(settings, env=env)
        self.is_topic = is_topic
        if is_topic:
            self._subscribe("all")
            self._subscribe("odd", sql("n % 2 = 1"), only_odd=True)
            self._subscribe("sessions", sql("1 = 1", "SET seen = 1"), requires_session=True)
        else:
            self._view("", settings)
        self._opened()

    def _settings(self, *, requires_session: bool = False) -> FragmentSettings:
        return FragmentSettings(
            lock_duration_ms=LOCK_MS,
            max_delivery_count=self.random.choice([2, 3, 1_000]),
            dead_letters_on_expiry=self.random.random() < 0.5,
            requires_session=requires_session,
            duplicate_window_ms=WINDOW_MS if self.has_ids else None,
        )

    def _view(self, name: str, settings: FragmentSettings, *, only_odd: bool = False) -> None:
        window_ms = WINDOW_MS if self.has_ids else None
        history = MessageHistory(most_deliveries=settings.max_delivery_count, window_ms=window_ms)
        self.views.append(View(name, history, settings, only_odd))

    def _subscribe(self, name: str, *rules: Any, only_odd: bool = False, requires_session: bool = False) -> None:
        assert isinstance(self.bench, TopicBench)
        named: dict[str, Any] = {"rules": rules} if rules else {}
        self.bench.subscribe(
            name, lock_duration_ms=LOCK_MS, max_delivery_count=2, requires_session=requires_session, **named
        )
        self._view(name, self.bench.subscriptions[name].settings, only_odd=only_odd)

    # Lives

    def run(self) -> str:
        """Some lives, the last one to rest; a hash of all that happened."""
        for number in range(self.random.randrange(1, 4)):
            self.live(number)
        self.finish()
        self.env_trace.update(self.bench.env.trace.digest() + self.files.trace.digest())
        return self.env_trace.hexdigest()

    def live(self, number: int) -> None:
        """Open, work, end somehow."""
        if self.random.random() < 0.75:
            self.plan = plan_a_fault(self.files, self.random)
        try:
            if number:
                self.bench.open()
                self._opened()
            for _ in range(self.random.randrange(6, 26)):
                self.step()
            self.end()
        except PowerCut:
            self.crash(power_cut=True)
        except Killed:
            self.crash(power_cut=False)
        except (OSError, StoreError) as error:
            if isinstance(error, CorruptStore):
                raise
            self.crash(power_cut=self.random.random() < 0.5)

    def end(self) -> None:
        choice = self.random.random()
        if not self.files.plans:
            self.bench.run_for(1_000)
            self.raise_faults()
            self._expect_nobody_waits_for_what_is_there()
        if choice < 0.25:
            self.bench.store.close(lambda: None)
            self.bench.run_for(500)
        self.crash(power_cut=choice < 0.7)

    def crash(self, *, power_cut: bool, heals: bool = True) -> None:
        """The process is over; the next one is there, and has not opened anything. heals: faults are over, too."""
        self.raise_faults()
        if heals:
            self.files.heal()
        self.passed_ms += self.bench.env.monotonic_ms()
        self.life += 1
        for view in self.views:
            view.history.crashed()
            for receiver, asked in view.asked.items():
                if receiver.mode is DELETE:
                    view.history.may_be_taken(asked.most)
            view.history.may_be_taken(len(view.wanted))
            view.receivers, view.holds, view.asked, view.wanted = [], {}, {}, set()
            for text in self.scheduled.values():
                view.history.cancelled(text, SeenAnswer.UNKNOWN)
        self.scheduled = {}
        self.env_trace.update(self.bench.env.trace.digest())
        self.bench.env.crash(power_cut=power_cut)
        self.bench.env = self.bench.env.restart()

    def _opened(self) -> None:
        bench = self.bench
        upkeep = bench.topic.upkeep if isinstance(bench, TopicBench) else bench.fragment.upkeep
        upkeep.snapshot_records = self.random.choice([5, 40, 10_000])
        upkeep.slack_bytes = self.random.choice([-(1 << 30), 50_000])
        bench.late_ms = self.random.choice([0, 0, 300])
        self.offsets = [self._offset()]
        for view in self.views:
            fragment = self._bench(view).fragment
            if self.is_grouping:
                one, other = (self.noting(partial(self._given, view)) for _ in range(2))
                view.groups = [None, other, one, one, one, one]
            view.receivers = [fragment.open_receiver(SubQueue.DEAD_LETTERS, PEEK_LOCK)]
            if not view.settings.requires_session:
                view.receivers += [
                    fragment.open_receiver(SubQueue.MAIN, mode) for mode in (PEEK_LOCK, PEEK_LOCK, DELETE)
                ]

    def _bench(self, view: View) -> QueueBench:
        return self.bench.of(view.name) if isinstance(self.bench, TopicBench) else self.bench

    def now(self) -> int:
        """By a clock that never jumps, and goes on from life to life."""
        return self.passed_ms + self.bench.env.monotonic_ms()

    def _offset(self) -> int:
        return self.bench.env.now_ms() - self.now()

    def raise_faults(self) -> None:
        """A fault in an answer stops the log, and is not raised by it."""
        if self.faults:
            raise self.faults[0]

    def noting(self, answered: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same; its faults are kept, and nobody of an earlier life calls it."""
        life = self.life

        def called(answer: Any) -> None:
            try:
                assert life == self.life, "a process that is gone answers"
                if isinstance(answer, Refused) and isinstance(answer.error, CorruptStore):
                    raise Violation(f"P1: {answer.error}")
                answered(answer)
            except Exception as fault:
                self.faults.append(fault)
                raise

        return called

    # Steps

    def step(self) -> None:
        (step,) = self.random.choices(*STEPS)
        step(self)
        if self.random.random() < 0.7:
            self.bench.run_for(self.random.choice([0, 5, 60]))
        self.raise_faults()

    def send(self) -> None:
        self.groups += 1
        group, some, now_ms = self.groups, list[str](), self.now()
        later = self.sends_later and self.random.random() < 0.3
        at_ms = self.bench.env.now_ms() + self.random.randrange(1, 8_000)
        messages = []
        session = self.random.choice(SESSIONS)
        for _ in range(self.random.choice([1, 1, 3, 12])):
            self.messages += 1
            text, number = f"m{self.messages}", self.messages
            body = f"{text}|{'x' * self.random.choice([0, 100, 1_500])}"
            ttl_ms = self.random.choice([2_000, 20_000]) if self.random.random() < 0.1 else None
            if self.is_grouping:
                session = self._grouping.choice(GROUPED)
            own_id = None
            if self.has_ids and self.random.random() < 0.7:
                own_id = f"id {2 * self.random.randrange(IDS) + number % 2}"  # so that one id goes to the same views
            for view in self.views:
                if number % 2 or not view.only_odd:
                    view.history.send(
                        group,
                        text,
                        body.encode(),
                        now_ms,
                        session=session if view.settings.requires_session else None,
                        message_id=own_id,
                        is_scheduled=later,
                        may_expire=ttl_ms is not None,
                    )
            messages.append(
                message(
                    body,
                    session=session,
                    message_id=own_id,
                    ttl_ms=ttl_ms,
                    scheduled_ms=at_ms if later else None,
                    properties={"n": number},
                )
            )
            some.append(text)
        run = run_of(*messages, size=self.random.choice([1, 5, 100]))
        answered = self.noting(partial(self._sent, group, some))
        self.bench.fragment.enqueue(run, len(some), self.bench.times(), answered)

    def _sent(self, group: int, some: list[str], answer: NumberRange | Refused | ServiceError) -> None:
        if isinstance(answer, NumberRange):
            if answer.first_number < self.next_number or answer.next_number - answer.first_number != len(some):
                raise Violation(f"P3: {len(some)} messages have {answer}, and {self.next_number} is next")
            self.next_number = answer.next_number
        for view in self.views:
            sent = view.history.groups.get(group)
            if sent is None:
                continue
            if isinstance(answer, NumberRange):
                view.history.accepted(group, self.now())
                if not self.is_topic:
                    for place, each in enumerate(sent):
                        each.number = each.number or answer.first_number + place
            elif isinstance(answer, Refused) and answer.known:
                view.history.refused(group)

    def receive(self) -> None:
        view = self.random.choice(self.views)
        receivers = [each for each in [*view.receivers, *view.holds] if each not in view.asked]
        if not receivers:
            return
        receiver = self.random.choice(receivers)
        self._ask(view, receiver, self.random)
        if self.random.random() < 0.3:
            self.bench.run_for(self.random.choice([0, 5, 60]))
            if receiver in view.asked:
                self._bench(view).fragment.cancel_receive(receiver)

    def _ask(self, view: View, receiver: FragmentReceiver, random: Random) -> None:
        asked = view.asked[receiver] = Asked(view.history.tick, self.now(), random.choice([1, 2, 10]))
        self._bench(view).fragment.receive(
            receiver,
            max_count=asked.most,
            max_bytes=random.choice([100, 10_000, MANY_BYTES]),
            on_done=self.noting(partial(self._received, view, receiver, asked)),
        )

    def _received(self, view: View, receiver: FragmentReceiver, asked: Asked, answer: Any) -> None:
        del view.asked[receiver]
        if isinstance(answer, ReceivedMessages):
            got = opened(answer)
            if [each.number for each in got] != sorted({each.number for each in got}):
                raise Violation("P7: the messages of one answer are not in order")
            is_dead = receiver.sub_queue is SubQueue.DEAD_LETTERS
            self._take_in(view, got, asked, mode=receiver.mode, hold=view.holds.get(receiver), is_dead=is_dead)
        elif receiver.mode is DELETE and not (isinstance(answer, Refused) and answer.known):
            view.history.may_be_taken(asked.most)

    def _given(self, view: View, given: GivenMessages) -> None:
        """Holders of sessions get messages, and their receives go on."""
        at = 0
        for receiver, count in zip(given.receivers, given.counts, strict=True):
            asked, hold = view.asked[receiver], view.holds[receiver]
            if count > asked.most:
                raise Violation(f"P7: {count} messages are given to a holder that asked for {asked.most}")
            rows = given.rows[at * MESSAGE_WIDTH : (at + count) * MESSAGE_WIDTH]
            got = opened(ReceivedMessages(given.run, rows))
            self._take_in(view, got, asked, mode=receiver.mode, hold=hold, is_dead=False)
            view.asked[receiver] = Asked(view.history.tick, self.now(), asked.most - count)
            at += count

    def _expect_nobody_waits_for_what_is_there(self) -> None:
        """In a session, when nothing is under way."""
        for view in self.views:
            messages = self._bench(view).fragment._core.state.messages
            for receiver in view.asked:
                session = receiver.session
                if session is not None and session.first_ready(messages, self.bench.env.now_ms()) is not None:
                    raise Violation(f"P7: who holds session {receiver.session_id} waits, and a message is ready")

    def _take_in(self, view: View, got: list[Got], asked: Asked, *, mode: Any, **how: Any) -> None:
        history, now_ms = view.history, self.now()
        for each in got:
            text = each.body.split(b"|")[0].decode()
            if mode is DELETE:
                history.taken(text, each.number, each.body, now_ms, asked=asked.tick, **how)
                continue
            history.received(
                text,
                each.number,
                each.body,
                now_ms,
                token=each.token,
                until_ms=self._until(each.locked_until_ms, asked.at_ms),
                deliveries=each.deliveries,
                asked=asked.tick,
                **how,
            )
            view.tokens.append(each.token)

    def _until(self, stamp_ms: int, asked_ms: int) -> int:
        """When a lock ends; it was given behind its question, by what the wall clock said then."""
        for offset in self.offsets:
            if asked_ms <= stamp_ms - offset - LOCK_MS <= self.now():
                return stamp_ms - offset
        return self.now()  # a session's

    def settle(self) -> None:
        view = self.random.choice(self.views)
        if not view.tokens:
            return
        recent = view.tokens[-12:]
        tokens = self.random.sample(recent, min(len(recent), self.random.choice([1, 1, 3])))
        outcome = self.random.choice([*SeenOutcome, SeenOutcome.ABANDON])
        details = None
        if outcome is SeenOutcome.ABANDON and self.random.random() < 0.4:
            details = SettleDetails(properties=CHANGES)
        asked = [view.history.settling(token, outcome, self.now()) for token in tokens]

        def answered(answer: bytes | Refused | ServiceError) -> None:
            assert not isinstance(answer, ServiceError)
            for place, settlement in enumerate(asked):
                if isinstance(answer, Refused):
                    view.history.settled(settlement, SeenAnswer.REFUSED if answer.known else SeenAnswer.UNKNOWN)
                else:
                    view.history.settled(settlement, SeenAnswer.DONE if answer[place] == SETTLED else SeenAnswer.LOST)

        fragment, times = self._bench(view).fragment, self.bench.times()
        said = SettleOutcome[outcome.name]
        fragment.settle(b"".join(tokens), said, times, self.noting(answered), details=details)

    def settle_and_go_on(self) -> None:
        """With no moment between: what comes next must not pass what is on its way."""
        self.settle()
        if self.random.random() < 0.5:
            self.close_session()
            self.accept_session()
            self.bench.run_for(self.random.choice([0, 5]))
        for _ in range(3):
            self.receive()

    def renew(self) -> None:
        view = self.random.choice(self.views)
        if view.holds and self.random.random() < 0.5:
            receiver = self.random.choice(list(view.holds))
            hold = view.holds[receiver]
            is_good = not hold.is_over and hold.until_ms > self.now()
            with suppress(ServiceError):
                self._bench(view).fragment.renew_session(hold.session, self.bench.times())
                if not is_good:
                    raise Violation(f"P10: session {hold.session} is renewed for one who lost it")
                hold.until_ms = self.now() + LOCK_MS
        elif view.tokens:
            token = self.random.choice(view.tokens[-12:])
            (until_ms,) = self._bench(view).fragment.renew(token, self.bench.times())
            view.history.renewed(token, self.now() + LOCK_MS if until_ms else None, self.now())

    def take_deferred(self) -> None:
        view = self.random.choice(self.views)
        deferred = [sent for sent in view.history.sent.values() if sent.place is SeenPlace.DEFERRED and sent.number]
        deferred = [sent for sent in deferred if sent.text not in view.wanted]
        if not deferred:
            return
        sent = self.random.choice(deferred)
        receiver = next((each for each, hold in view.holds.items() if hold.session == sent.session), None)
        if sent.session is not None and receiver is None:
            return
        mode = self.random.choice([PEEK_LOCK, PEEK_LOCK, DELETE])
        asked = Asked(view.history.tick, self.now(), 1)
        hold = None if receiver is None else view.holds[receiver]  # it may end before the answer, and the lock with it

        def answered(answer: Any) -> None:
            view.wanted.discard(sent.text)
            if isinstance(answer, ReceivedMessages):
                self._take_in(view, opened(answer), asked, mode=mode, hold=hold, is_asked_by_number=True)
            elif mode is DELETE and not (isinstance(answer, Refused) and answer.known):
                view.history.may_be_taken(1)

        try:
            assert sent.number is not None
            view.wanted.add(sent.text)
            self._bench(view).fragment.receive_deferred(
                SubQueue.MAIN,
                array("q", [sent.number]),
                mode,
                self.bench.times(),
                self.noting(answered),
                session_id=sent.session,
            )
        except ServiceError as error:
            view.wanted.discard(sent.text)
            is_lost = sent.session is not None and (hold is None or hold.until_ms <= self.now())
            is_dead = view.history.may_be_dead(sent)
            if not (is_lost or is_dead or sent.lock or sent.may_be_gone or sent.may_expire or view.history.allowance):
                raise Violation(f"P7: {sent.text} is deferred and not found: {error}") from error

    def accept_session(self) -> None:
        view = self.random.choice([view for view in self.views if view.settings.requires_session] or [None])
        if view is None:
            return
        named = self.random.choice([None, *SESSIONS])
        for each in GROUPED if self.is_grouping and self._grouping.random() < 0.8 else (named,):
            self._accept(view, each)

    def _accept(self, view: View, session: str | None) -> None:
        def granted(receiver: Any) -> None:
            if isinstance(receiver, FragmentReceiver):
                assert receiver.session_id is not None
                hold = view.holds[receiver] = view.history.hold(receiver.session_id, self.now() + LOCK_MS, self.now())
                state = self._bench(view).fragment.session_state(hold.session)
                view.history.sessions.state_seen(hold.session, state)
                if self.is_grouping:
                    self._ask(view, receiver, self._grouping)

        def lost(receiver: FragmentReceiver, error: ServiceError) -> None:
            hold = view.holds.pop(receiver)
            view.history.let_go(hold)

        with suppress(ServiceError):
            self._bench(view).fragment.accept_session(
                session,
                PEEK_LOCK,
                self.bench.times(),
                wait_ms=200,
                on_done=self.noting(granted),
                on_lost=lost,
                on_given=self._grouping.choice(view.groups),
            )

    def close_session(self) -> None:
        view = self.random.choice(self.views)
        if view.holds:
            receiver = self.random.choice(list(view.holds))
            # Its receive is answered empty; what is being read for it comes to nobody.
            view.history.let_go(view.holds[receiver])
            self._bench(view).fragment.close_receiver(receiver)
            del view.holds[receiver]

    def set_state(self) -> None:
        view = self.random.choice(self.views)
        if not view.holds:
            return
        hold = self.random.choice(list(view.holds.values()))
        fragment, sessions = self._bench(view).fragment, view.history.sessions
        with suppress(ServiceError):
            sessions.state_seen(hold.session, fragment.session_state(hold.session))
        self.values += 1
        value = b"%d" % self.values

        def answered(answer: Any) -> None:
            is_unknown = isinstance(answer, Refused) and not answer.known
            sessions.set_done(hold.session, value, is_done=None if is_unknown else answer is None)

        sessions.setting(hold.session, value)
        try:
            fragment.set_session_state(hold.session, value, self.bench.times(), self.noting(answered))
        except ServiceError:
            sessions.take_back(hold.session, value)

    def cancel_scheduled(self) -> None:
        (view, *others) = self.views
        some = [sent for sent in view.history.sent.values() if sent.is_scheduled and sent.number and sent.accepted]
        some = [sent for sent in some if not sent.is_seen and sent.number not in self.scheduled]
        if others or not some:
            return  # of a topic the numbers are its own
        sent = self.random.choice(some)
        number = sent.number or 0

        def answered(answer: Any) -> None:
            del self.scheduled[number]
            is_refused = isinstance(answer, Refused) and answer.known
            said = SeenAnswer.DONE if answer is None else SeenAnswer.REFUSED if is_refused else SeenAnswer.UNKNOWN
            view.history.cancelled(sent.text, said)

        with suppress(ServiceError):
            self.bench.fragment.cancel_scheduled(array("q", [number]), self.noting(answered))
            self.scheduled[number] = sent.text

    def peek(self) -> None:
        view = self.random.choice(self.views)
        asked = view.history.tick
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):

            def answered(answer: Any) -> None:
                for each in opened(answer) if isinstance(answer, ReceivedMessages) else []:
                    text = each.body.split(b"|")[0].decode()
                    view.history.peeked(text, each.number, each.body, self.now(), asked=asked)

            fragment = self._bench(view).fragment
            fragment.peek(sub_queue, 1, max_count=50, max_bytes=MANY_BYTES, on_done=self.noting(answered))

    def maintain(self) -> None:
        bench = self.bench
        (bench.topic if isinstance(bench, TopicBench) else bench.fragment).maintain(bench.times())

    def pass_time(self) -> None:
        self.bench.run_for(self.random.choice([1, 20, 200, 1_500, LOCK_MS + 100]))

    def disturb_clocks(self) -> None:
        if self.has_bad_clocks:
            self.bench.env.jump(self.random.choice([-1, 1]) * self.random.choice(JUMPS_MS))
            self.offsets.append(self._offset())

    def heal(self) -> None:
        self.files.heal()  # a log that went offline comes back by itself
        self.bench.run_for(4_000)

    # The end

    def finish(self) -> None:
        """Come to rest, look at all that is left, and again after a last power cut."""
        self.files.heal()
        if self.has_bad_clocks:  # what was scheduled by a clock that was ahead is due, too
            self.bench.env.jump(30 * JUMPS_MS[1])
        self.bench.open()
        self.offsets = [self._offset()]
        self.bench.run_for(60_000)
        self.raise_faults()
        first = [self._left(view) for view in self.views]
        self._check_groups()
        self.crash(power_cut=True)
        self.bench.open()
        self.offsets = [self._offset()]
        self.bench.run_for(1_000)
        again = [self._left(view) for view in self.views]
        for view, before, now in zip(self.views, first, again, strict=True):
            changed = {each for each in before ^ now if not view.history.sent[each[0]].may_expire}
            if changed:
                raise Violation(f"P1: {view.name} has changed while nobody did anything: {sorted(changed)[:4]}")

    def _left(self, view: View) -> set[tuple[str, int, bool]]:
        found: list[tuple[str, int, bytes, bool]] = []
        bench = self._bench(view)
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            from_number = 1
            while got := self._peeked(bench, sub_queue, from_number):
                is_dead = sub_queue is SubQueue.DEAD_LETTERS
                found += [(each.body.split(b"|")[0].decode(), each.number, each.body, is_dead) for each in got]
                from_number = got[-1].number + 1
        view.history.left(found, self.now())
        counts = bench.fragment.counts()
        held = counts.active + counts.deferred + counts.scheduled + counts.dead_lettered
        if held != len(found):
            raise Violation(f"P1: {held} messages are counted, {len(found)} are there")
        return {(text, number, is_dead) for text, number, _, is_dead in found}

    def _peeked(self, bench: QueueBench, sub_queue: SubQueue, from_number: int) -> list[Got]:
        peek = partial(bench.fragment.peek, sub_queue, from_number, max_count=1_000, max_bytes=MANY_BYTES)
        answer: Any = answered(bench.env, lambda on_done: peek(on_done=on_done))
        if not isinstance(answer, ReceivedMessages):
            raise Violation(f"P1: what is left cannot be read: {answer}")
        return opened(answer)

    def _check_groups(self) -> None:
        """A send that nobody answered for is with all subscriptions, or with none."""
        for group in range(1, self.groups + 1):
            views = [view for view in self.views if group in view.history.groups]
            there = {view.name: view.history.is_there(group) for view in views}
            if self.has_ids or not {True, False} <= set(there.values()):
                continue
            raise Violation(f"P2: send {group} is there for some: {there}")


_CHOICES: dict[Callable[[FragmentWorld], None], int] = {
    FragmentWorld.send: 8, FragmentWorld.receive: 12, FragmentWorld.settle: 10, FragmentWorld.renew: 2,
    FragmentWorld.settle_and_go_on: 5, FragmentWorld.take_deferred: 2, FragmentWorld.accept_session: 6,
    FragmentWorld.close_session: 1,
    FragmentWorld.set_state: 2, FragmentWorld.cancel_scheduled: 1, FragmentWorld.peek: 1, FragmentWorld.maintain: 2,
    FragmentWorld.pass_time: 5, FragmentWorld.disturb_clocks: 1, FragmentWorld.heal: 1,
}  # fmt: skip
STEPS = list(_CHOICES), list(_CHOICES.values())


def play(seed: int, *, is_topic: bool = False) -> str:
    """One seeded history; the hash of its trace. Raises Violation."""
    return FragmentWorld(seed, is_topic=is_topic).run()
