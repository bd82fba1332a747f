"""Plays walks of the session's model to a fragment: each request, each answer, and behind each step what is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hubweir.errors import SESSION_CANNOT_BE_LOCKED, SESSION_LOCK_LOST, ServiceError
from hubweir.queue.fragment import FragmentReceiver
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.settle_outcome import SESSION_LOCK_LOST as LOST_CODE
from hubweir.queue.settle_outcome import SETTLED, SettleDetails, SettleOutcome
from hubweir.queue.sub_queue import ReceiveMode, SubQueue
from tests.models.explorer import Action
from tests.models.played_fragment import FOR_EVER_MS, Answer, PlayedFragment
from tests.models.session_lock import COMPLETE, CURRENT, MODIFY, NOBODY, SET, SessionLock, State

SESSION = "a"
WAIT_MS = 1_000 * FOR_EVER_MS  # a client waits for a session through all holds of a walk
MODIFIED = SettleDetails(properties=b"\xc1\x0f\x02\xa1\x06colour\xa1\x04blue")
OUTCOMES = {"complete": SettleOutcome.COMPLETE, "abandon": SettleOutcome.ABANDON, "modify": SettleOutcome.ABANDON}
KINDS = {"complete": COMPLETE, "modify": MODIFY}


@dataclass(slots=True)
class Client:
    """A receiver as it knows itself; see Receiver of the model. current, stale: tokens by message."""

    receiver: FragmentReceiver | None = None
    asks: Answer | None = None
    current: dict[int, bytes] = field(default_factory=dict)
    stale: dict[int, bytes] = field(default_factory=dict)


class SessionPlayer:
    """See the module's text. One for each walk."""

    def __init__(self, model: SessionLock) -> None:
        self._model = model
        self._played = PlayedFragment(
            FragmentSettings(requires_session=True, lock_duration_ms=FOR_EVER_MS, max_delivery_count=model.count_limit)
        )
        for message in range(model.messages):
            self._played.send(str(message), session=SESSION)
            self._played.sync()
        self._clients = [Client() for _ in range(model.receivers)]
        self._under_way: list[tuple[int, Answer]] = []  # kinds of what clients wait for
        self._lost: list[FragmentReceiver] = []

    def play(self, action: Action, before: State, after: State) -> None:
        """See Player."""
        name, *arguments = action
        held = self._clients[before.holder - 1].receiver if before.holder else None
        getattr(self, f"_{name}")(*arguments, before)
        if name not in ("kill", "power_cut"):
            is_told = bool(before.is_over and not after.is_over)
            assert self._lost == ([held] if is_told else []), f"told of a lost session: {len(self._lost)} receivers"
            self._hear(name, after)
            if is_told or name == "close":
                self._end_tokens()
        self._lost = []

    def _end_tokens(self) -> None:
        for client in self._clients:
            client.stale |= client.current
            client.current = {}

    def compare(self, state: State) -> None:
        """See Player."""
        played = self._played
        expected, value = self._model.view(state)
        shown = [("gone", -1)] * self._model.messages
        for sub_queue in (SubQueue.MAIN, SubQueue.DEAD_LETTERS):
            for got in played.peek(sub_queue):
                place = "dead-lettered" if sub_queue is SubQueue.DEAD_LETTERS else "active"
                message = int(got.body)
                shown[message] = ("locked" if played.is_locked(got.number) else place, got.deliveries)
        there = [("gone", -1) if place == "gone" else (place, count) for place, count in expected]
        assert shown == there, f"a peek shows {shown}, the model {there}"
        appends = played.log.in_flight
        assert appends == len(state.tail), f"{appends} appends are in flight, {len(state.tail)} in the model"
        self._compare_session(state, value)

    def _compare_session(self, state: State, value: int) -> None:
        played = self._played
        if not state.holder:
            assert _error_of(lambda: played.fragment.session_state(SESSION)) is SESSION_LOCK_LOST, "somebody holds it"
            return
        shown = len(played.fragment.session_state(SESSION) or b"")
        assert shown == value, f"the session's state is {shown}, {value} in the model"
        holder = self._clients[state.holder - 1].receiver
        if holder is not None and not state.is_over and self._model.first_ready(state) is None:
            answer = self._receiving(holder)
            played.fragment.cancel_receive(holder)
            assert answer.got == [], "a message is given, and none may be"

    # Actions, by their names

    def _accept(self, name: int, result: str, before: State) -> None:
        self._ask_for(name, SESSION, result)

    def _accept_next(self, name: int, result: str, before: State) -> None:
        self._ask_for(name, None, result)

    def _ask_for(self, name: int, session_id: str | None, result: str) -> None:
        played, client, answer = self._played, self._clients[name], Answer()
        error = _error_of(
            lambda: played.fragment.accept_session(
                session_id,
                ReceiveMode.PEEK_LOCK,
                played.times(),
                wait_ms=WAIT_MS,
                on_done=answer,
                on_lost=lambda receiver, error: self._lost.append(receiver),
            )  # fmt: skip
        )
        played.turns()
        if error is None and answer.is_there and isinstance(answer.value, ServiceError):
            error = answer.value.condition
        assert (error is SESSION_CANNOT_BE_LOCKED) == (result == "refused"), f"who asks is answered {error}"
        if error is None:
            assert answer.is_there == (result == "granted"), f"who asks is answered: {answer.is_there}"
            client.asks = answer

    def _receive(self, name: int, message: int, before: State) -> None:
        client = self._clients[name]
        assert client.receiver is not None
        (got,) = self._receiving(client.receiver).got
        assert int(got.body) == message, f"message {got.body.decode()} came, not {message}"
        client.current[message] = got.token

    def _receiving(self, receiver: FragmentReceiver) -> Answer:
        played = self._played
        return played.ask(
            lambda answer: played.fragment.receive(receiver, max_count=1, max_bytes=1_000, on_done=answer)
        )

    def _settle(self, name: int, message: int, how: str, which: str, result: str, before: State) -> None:
        played, client = self._played, self._clients[name]
        tokens = client.current if which == "current" else client.stale
        details = MODIFIED if how == "modify" else None
        answer = played.ask(
            lambda answer: played.fragment.settle(
                tokens[message], OUTCOMES[how], played.times(), answer, details=details
            )
        )
        if result == "waits":
            self._under_way.append((KINDS[how], answer))
            return
        del tokens[message]
        expected = bytes([LOST_CODE if result == "lost" else SETTLED])
        assert answer.value == expected, f"a settlement is answered {answer.value!r}, not {expected!r}"

    def _renew(self, name: int, result: str, before: State) -> None:
        error = _error_of(lambda: self._played.fragment.renew_session(SESSION, self._played.times()))
        self._played.turns()
        assert error is (SESSION_LOCK_LOST if result == "lost" else None), f"a renewal is answered {error}"

    def _set_state(self, name: int, result: str, before: State) -> None:
        played, answer = self._played, Answer()
        sets = sum(each.kind == SET for run in before.tail for each in run)
        state = bytes(before.value + sets + 1)
        error = _error_of(lambda: played.fragment.set_session_state(SESSION, state, played.times(), answer))
        played.turns()
        assert error is (SESSION_LOCK_LOST if result == "lost" else None), f"a state is answered {error}"
        if error is None:
            self._under_way.append((SET, answer))

    def _lose(self, before: State) -> None:
        self._played.turn()
        self._played.turns()

    def _time_over(self, before: State) -> None:
        """There was no turn since."""
        self._played.monotonic_ms += FOR_EVER_MS

    def _close(self, name: int, before: State) -> None:
        receiver = self._clients[name].receiver
        assert receiver is not None
        self._played.fragment.close_receiver(receiver)
        self._played.turns()

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
        self._under_way = []
        self._end_tokens()
        for client in self._clients:
            client.receiver = client.asks = None

    # Answers

    def _hear(self, action: str, after: State) -> None:
        """Who waits is answered when the model says so, and not before."""
        for kind, answer in self._under_way:
            if answer.is_there:
                assert answer.is_refused == (action == "sync_fails"), f"a request is answered {answer.value!r}"
                said = None if kind == SET else bytes([SETTLED])
                assert answer.is_refused or answer.value == said, f"a request is answered {answer.value!r}"
        self._under_way = [each for each in self._under_way if not each[1].is_there]
        waiting = sorted(kind for kind, _ in self._under_way)
        expected = sorted(each.kind for run in after.tail for each in run if each.by != NOBODY)
        assert waiting == expected, f"clients wait for {waiting}, for {expected} in the model"
        for name, client in enumerate(self._clients):
            if client.asks is None:
                continue
            waits = any(wait.receiver == name for wait in after.waits)
            assert client.asks.is_there != waits, f"receiver {name} waits for the session: {not client.asks.is_there}"
            if not waits:
                granted, client.asks = client.asks.value, None
                is_holder = after.receivers[name].session == CURRENT
                assert isinstance(granted, FragmentReceiver) == is_holder, f"who asked is answered {granted}"
                client.receiver = granted if is_holder else None


def _error_of(call: Any) -> Any:
    """The condition with which a call is refused; None: it was not."""
    try:
        call()
    except ServiceError as error:
        return error.condition
    return None
