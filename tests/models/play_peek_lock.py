"""Plays walks of the peek-lock model to a fragment: each request, each answer, and a peek behind each step."""

from __future__ import annotations

from array import array
from dataclasses import dataclass

from hubweir.queue.fragment import NumberRange
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import LOCK_LOST, SETTLED, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from tests.models.explorer import Action
from tests.models.peek_lock import CANCEL, DEAD, DEFERRED, SCHEDULE, SEND, PeekLock, State
from tests.models.played_fragment import FOR_EVER_MS, NOW_MS, Answer, PlayedFragment

OUTCOMES = {
    "complete": SettleOutcome.COMPLETE, "abandon": SettleOutcome.ABANDON, "defer": SettleOutcome.DEFER,
    "dead-letter": SettleOutcome.DEAD_LETTER, "release": SettleOutcome.RELEASE,
}  # fmt: skip
SCHEDULED_MS = NOW_MS + 3_600_000
PLACES = ("active", "deferred", "scheduled")


@dataclass(slots=True)
class Client:
    """A receiver as it knows itself; see Receiver of the model."""

    message: int = -1
    token: bytes = b""
    waits: Answer | None = None
    takes: bool = False


class PeekLockPlayer:
    """See the module's text. One for each walk."""

    def __init__(self, model: PeekLock) -> None:
        settings = FragmentSettings(lock_duration_ms=FOR_EVER_MS, max_delivery_count=model.count_limit)
        self._model = model
        self._played = PlayedFragment(settings)
        self._clients = [Client() for _ in range(model.receivers)]
        self._sends: list[tuple[int, Answer]] = []
        self._removals: list[Answer] = []  # cancelled
        self._tokens: dict[int, bytes] = {}  # of the newest lock of each message
        self.numbers: dict[int, int] = {}

    def play(self, action: Action, before: State, after: State) -> None:
        """See Player."""
        name, *arguments = action
        getattr(self, f"_{name}")(*arguments, before)
        self._hear(after)

    def compare(self, state: State) -> None:
        """See Player."""
        played, expected = self._played, self._model.view(state)
        shown = [("not there", 0)] * self._model.messages
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            for got in played.peek(sub_queue):
                place = "dead-lettered" if sub_queue is SubQueue.DEAD_LETTERS else PLACES[got.state]
                message = int(got.body)
                assert shown[message] == ("not there", 0), f"message {message} is there twice"
                self.numbers[message] = got.number
                shown[message] = ("locked" if played.is_locked(got.number) else place, got.deliveries)
        there = [("not there", 0) if place in ("not sent", "gone") else (place, count) for place, count in expected]
        assert shown == there, f"a peek shows {shown}, the model {there}"
        appends = played.log.in_flight
        assert appends == len(state.tail), f"{appends} appends are in flight, {len(state.tail)} in the model"
        self._compare_counts(state)

    def _compare_counts(self, state: State) -> None:
        counts = self._played.fragment.counts()
        places = [each.place for each in state.stored]
        told = counts.dead_lettered, counts.deferred
        assert told == (places.count(DEAD), places.count(DEFERRED)), f"the counts are {counts}"

    # Actions, by their names

    def _send(self, message: int, before: State) -> None:
        self._sends.append((message, self._played.send(str(message))))

    def _schedule(self, message: int, before: State) -> None:
        self._sends.append((message, self._played.send(str(message), scheduled_ms=SCHEDULED_MS)))

    def _activate(self, message: int, before: State) -> None:
        """Its time comes for this turn alone: if its activation is refused, the model may cancel it still."""
        self._played.stamp_ms = SCHEDULED_MS
        self._played.turn()
        self._played.turns()
        self._played.stamp_ms = NOW_MS

    def _cancel(self, message: int, before: State) -> None:
        numbers = array("q", [self.numbers[message]])
        fragment = self._played.fragment
        self._removals.append(self._played.ask(lambda answer: fragment.cancel_scheduled(numbers, answer)))

    def _lock(self, name: int, message: int, before: State) -> None:
        client = self._clients[name] = Client(message)
        (got,) = self._received(message, ReceiveMode.PEEK_LOCK, before).got
        assert int(got.body) == message, f"message {got.body.decode()} came, not {message}"
        client.token = self._tokens[message] = got.token

    def _take(self, name: int, message: int, before: State) -> None:
        waits = self._received(message, ReceiveMode.RECEIVE_AND_DELETE, before)
        self._clients[name] = Client(message, waits=waits, takes=True)

    def _received(self, message: int, mode: ReceiveMode, before: State) -> Answer:
        played, place = self._played, before.stored[message].place
        fragment = played.fragment
        if place == DEFERRED:
            numbers = array("q", [self.numbers[message]])
            return played.ask(
                lambda answer: fragment.receive_deferred(SubQueue.MAIN, numbers, mode, played.times(), answer)
            )
        receiver = fragment.open_receiver(SubQueue.DEAD_LETTERS if place == DEAD else SubQueue.MAIN, mode)
        return played.ask(lambda answer: fragment.receive(receiver, max_count=1, max_bytes=1_000, on_done=answer))

    def _settle(self, name: int, how: str, result: str, before: State) -> None:
        played, client = self._played, self._clients[name]
        answer = played.ask(lambda answer: played.fragment.settle(client.token, OUTCOMES[how], played.times(), answer))
        if result == "waits":
            client.waits = answer
            return
        expected = bytes([LOCK_LOST if result == "lost" else SETTLED])
        assert answer.value == expected, f"a settlement is answered {answer.value!r}, not {expected!r}"
        self._clients[name] = Client()

    def _time_over(self, message: int, before: State) -> None:
        self._played.end_time_of(self._tokens[message])

    def _run_out(self, message: int, before: State) -> None:
        self._played.turn()
        self._played.turns()

    def _die(self, name: int, before: State) -> None:
        self._clients[name] = Client()

    def _sync(self, before: State) -> None:
        self._played.sync()

    def _sync_fails(self, before: State) -> None:
        self._played.fail()

    def _kill(self, before: State) -> None:
        self._crash(len(before.tail))

    def _power_cut(self, kept: int, before: State) -> None:
        self._crash(kept)

    def _crash(self, kept: int) -> None:
        self._played.crash(kept)
        self._sends, self._removals = [], []
        self._clients = [Client(each.message, each.token) if each.token else Client() for each in self._clients]

    # Answers

    def _hear(self, after: State) -> None:
        """Who waits is answered when the model says so, and not before."""
        for message, answer in self._sends:
            if answer.is_there and not answer.is_refused:
                assert isinstance(answer.value, NumberRange), f"a send is answered with {answer.value}"
                assert after.told[message], f"the send of {message} is answered before it is durable"
                self.numbers[message] = answer.value.first_number
        self._sends = [each for each in self._sends if not each[1].is_there]
        self._removals = [each for each in self._removals if not each.is_there]
        for place, (client, receiver) in enumerate(zip(self._clients, after.receivers, strict=True)):
            if client.waits is None:
                continue
            is_answered = client.waits.is_there
            assert is_answered == (not receiver.waits_for), f"receiver {place} is answered: {is_answered}"
            if is_answered:
                self._clients[place] = self._heard(client, client.waits, has_token=bool(receiver.token))
        waiting, in_flight = len(self._sends) + len(self._removals), [each.kind for run in after.tail for each in run]
        expected = sum(kind in (SEND, SCHEDULE, CANCEL) for kind in in_flight)
        assert waiting == expected, f"{waiting} senders wait, {expected} in the model"

    def _heard(self, client: Client, answer: Answer, *, has_token: bool) -> Client:
        if answer.is_refused:
            return Client(client.message, client.token) if has_token else Client()
        if client.takes:
            assert [int(got.body) for got in answer.got] == [client.message], "another message was taken"
        else:
            assert answer.value == bytes([SETTLED]), f"a settlement is answered {answer.value!r}"
        return Client()
