"""A topic on its log: sends, fan-out, and a fragment for each subscription, in which its messages are received.

The topic's own fragment takes what is sent, as that of a queue does: quota, duplicates, schedules, times to live. In
its next turn the active messages are copied (fan_out.py), and a subscription's fragment gives them out: with numbers,
locks, delivery counts, sessions and dead letters of its own. All of them share the log, in which what a subscription's
fragment says begins with its number (topic_operation.py).

As with a fragment, nothing happens by itself: `wake` asks for a turn of the topic; each subscription has a wake and
turns of its own. Which subscriptions and rules there are the catalog says; the log holds since when. After a crash the
topic is what its log says, with the subscriptions that its owner names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from hubweir.errors import ServiceError
from hubweir.messaging_store.log import Appended, Log, Refused, call_all
from hubweir.messaging_store.operations import pack_operations
from hubweir.queue.fragment import Fragment, OnDone, Times
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.fragment_settings import FragmentSettings
from hubweir.queue.fragment_snapshot import encode_snapshot
from hubweir.queue.log_replay import load_state
from hubweir.queue.operation import SETTINGS, Operation, encode_operation, logged_settings
from hubweir.queue.traced_step import Step, StepTracer
from hubweir.queue.upkeep import Upkeep
from hubweir.topic.fan_out import CopiedTo, FanOut
from hubweir.topic.rule import Rule
from hubweir.topic.sql_evaluate import NewUuid
from hubweir.topic.topic_operation import added, prefix_of, removed
from hubweir.topic.topic_rules import TopicRules
from hubweir.topic.topic_state import TopicState, decode_topic, encode_topic


class TopicFragment:
    """See the module's text. own: the fragment that takes what is sent."""

    def __init__(
        self,
        log: Log,
        settings: FragmentSettings,
        *,
        entity: str,
        secret: bytes,
        wake: Callable[[], None],
        new_id: NewUuid,
        fragment_number: int = 0,
        tracer: StepTracer | None = None,
    ) -> None:
        """As Fragment. new_id: for rules that ask for one. tracer: None where nothing is traced."""
        self.log = log
        self.own = Fragment(log, settings, entity=entity, secret=secret, wake=wake, fragment_number=fragment_number)
        self.upkeep = Upkeep(log, self._cores, self._snapshot, self._apply)
        self._state = TopicState()
        self._rules = TopicRules[int](new_id)
        self._subscriptions: dict[int, CopiedTo] = {}
        self._adding: dict[str, list[OnDone[None]]] = {}
        begins = None if tracer is None else partial(tracer.begins, Step.COPY, entity)
        self._fan_out = FanOut(self.own.core, lambda: self._state, self._rules, self._subscriptions, begins)
        self.own.core.other_bytes = lambda: self._state.held.total
        self.next_deadline_ms: int | None = None

    # Opening and ending

    def load(
        self, times: Times, subscriptions: Mapping[str, FragmentSettings], on_done: Callable[[Refused | None], None]
    ) -> None:
        """Become what the log says, before anything else is called. subscriptions: by id. Others are gone.

        Those that are not in the log are there from now on. on_done when all of it is durable, or with why
        not. Behind it each is to be opened with `subscription`.
        """

        def loaded(state: TopicState | Refused) -> None:
            if isinstance(state, Refused):
                on_done(state)
            else:
                self._state = state
                self._reconcile(times, subscriptions, on_done)

        load_state(self.log, self.upkeep, self._state, decode_topic, loaded)

    def _reconcile(
        self, times: Times, subscriptions: Mapping[str, FragmentSettings], on_done: Callable[[Refused | None], None]
    ) -> None:
        """Have the subscriptions that are named, and no others."""
        there = {each.subscription_id: number for number, each in self._state.subscriptions.items()}
        records = [removed(number) for known, number in there.items() if known not in subscriptions]
        new = [each for each in subscriptions if each not in there]
        for number, each in enumerate(new, self._state.next_number):
            records += _records_of_new(number, each, subscriptions[each])

        def reconciled(refused: Refused | None) -> None:
            if refused is not None:
                on_done(refused)
            else:
                self.own.adopt(self._state.own, times, on_done)

        self._say(records, times, reconciled)

    def _say(self, records: Sequence[bytes], times: Times, on_done: Callable[[Refused | None], None]) -> None:
        """Append operations of the topic; on_done when the state is as they say."""
        if not records:
            on_done(None)
            return
        run = pack_operations(records)

        def appended(outcome: Appended | Refused) -> None:
            if isinstance(outcome, Refused):
                on_done(outcome)
            else:
                self._apply(run)
                on_done(None)

        self.own.core.append(run, times, appended)

    def begin(self) -> None:
        """Every subscription of the catalog was opened: messages are copied from now on, and not before."""
        self._fan_out.begin()
        self.own.core.wake()

    def end(self, error: ServiceError, times: Times) -> None:
        """As Fragment.end, of the topic alone: its subscriptions are the owner's to end."""
        self._fan_out.end()
        self.own.end(error, times)

    def let_go(self) -> None:
        """As Fragment.let_go, of the topic alone."""
        self.own.let_go()
        self.own.core.other_bytes = None
        del self._fan_out, self.upkeep

    # Turns

    def turn(self, times: Times) -> None:
        """Do what is due."""
        self.own.turn(times)
        self._fan_out.turn(times)
        dues = self.own.next_deadline_ms, self._fan_out.next_ms(times)
        self.next_deadline_ms = min((each for each in dues if each is not None), default=None)

    def maintain(self, times: Times) -> None:
        """Save, trim and move for all that share the log."""
        self.upkeep.maintain(times)

    # Subscriptions

    def add_subscription(
        self, subscription_id: str, settings: FragmentSettings, times: Times, on_done: OnDone[None]
    ) -> None:
        """Have a subscription; on_done when that is durable. From then on it gets messages, by its rules."""
        if self._state.number_of(subscription_id) is not None:
            on_done(None)
            return
        waiting = self._adding.setdefault(subscription_id, [])
        waiting.append(on_done)
        if len(waiting) > 1:
            return
        number = self._state.next_number
        self._state.next_number += 1  # taken, also when the log refuses

        def said(refused: Refused | None) -> None:
            call_all(partial(each, refused) for each in self._adding.pop(subscription_id))

        self._say(_records_of_new(number, subscription_id, settings), times, said)

    def subscription(
        self,
        subscription_id: str,
        settings: FragmentSettings,
        *,
        entity: str,
        secret: bytes,
        wake: Callable[[], None],
        keeps_failed: bool,
        rules: Iterable[Rule],
        times: Times,
        on_done: Callable[[Refused | None], None],
    ) -> Fragment:
        """The fragment of a subscription that is there; on_done when its settings are durable. See CopiedTo."""
        number = self._number_of(subscription_id)
        fragment = Fragment(
            self.log,
            settings,
            entity=entity,
            secret=secret,
            wake=wake,
            fragment_number=self.own.core.fragment_number,
            log_prefix=prefix_of(number),
        )
        fragment.adopt(self._state.subscriptions[number].state, times, partial(self._opened, on_done))
        self._subscriptions[number] = CopiedTo(fragment.core, keeps_failed)
        for rule in rules:
            self._rules.put(number, rule)
        return fragment

    def _opened(self, on_done: Callable[[Refused | None], None], refused: Refused | None) -> None:
        self.own.core.wake()
        on_done(refused)

    def change(self, subscription_id: str, *, keeps_failed: bool, rules: Iterable[Rule]) -> None:
        """Have these rules and no others; other settings are the fragment's. keeps_failed: see CopiedTo."""
        number = self._number_of(subscription_id)
        self._subscriptions[number] = CopiedTo(self._subscriptions[number].core, keeps_failed)
        self._rules.remove_all(number)
        for rule in rules:
            self._rules.put(number, rule)

    def remove_subscription(self, subscription_id: str, times: Times, on_done: OnDone[None]) -> None:
        """Have a subscription no longer, nor what it has; on_done when that is durable. One that is gone: nothing."""
        number = self._state.number_of(subscription_id)
        if number is None:
            on_done(None)
            return

        def said(refused: Refused | None) -> None:
            if refused is None:
                self._subscriptions.pop(number, None)
                self._rules.remove_all(number)
            on_done(refused)

        self._say([removed(number)], times, said)

    def put_rule(self, subscription_id: str, rule: Rule) -> None:
        """One rule more, or another in the place of the one of its name, from the next message on."""
        self._rules.put(self._number_of(subscription_id), rule)

    def remove_rule(self, subscription_id: str, name: str) -> None:
        """One rule less; nothing when there is none of that name."""
        self._rules.remove(self._number_of(subscription_id), name)

    def _number_of(self, subscription_id: str) -> int:
        number = self._state.number_of(subscription_id)
        assert number is not None, f"subscription {subscription_id} is not there"
        return number

    # What all that share the log have together

    def _cores(self) -> list[FragmentCore]:
        return [self.own.core, *(each.core for each in self._subscriptions.values())]

    def _snapshot(self) -> bytes:
        def encode(number: int | None) -> bytes:
            core = self.own.core if number is None else self._subscriptions[number].core
            return encode_snapshot(core.state, core.operations_under_way())

        return encode_topic(self._state, encode)

    def _apply(self, run: bytearray) -> None:
        self._state.apply_run(run, is_replay=False)


def _records_of_new(number: int, subscription_id: str, settings: FragmentSettings) -> list[bytes]:
    """What the log says of a new subscription. Its settings come with it: copies are made by them."""
    logged = encode_operation(Operation(SETTINGS, settings=logged_settings(settings)))
    return [added(number, subscription_id), prefix_of(number) + logged]
