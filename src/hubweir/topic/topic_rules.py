"""The rules of all subscriptions of one topic: which subscriptions get copies of a message, found by look-ups.

The answer is what rule_matching.py says of each rule, subscription by subscription; only for a message that cannot be
read, rules that are decided without reading it are not told as failed. The way is another: the conjunctions of simple
filters (simple_filter.py) lie in tables, so a message costs its own properties and the rules that it meets, not the
rules that there are.

| where a conjunction lies                                  | what a message pays for it                         |
|-----------------------------------------------------------|----------------------------------------------------|
| without operands: with the subscriptions that get all     | nothing                                            |
| with keys: in a table for each set of key columns         | a look-up a table, then the checks of what it finds |
| with checks alone: in a table without columns             | the checks, if the message has the first's column  |
| others, and whole filters that may fail                   | an evaluation                                      |

A table is reached by its first column: with the message's own properties, and the system properties that tables begin
with. Rules are put in and removed one by one. The catalog is where rules are kept, listed, limited and found by name;
here they are in another form, made again at each start.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar

from hubweir.namespace.resource_path import fold
from hubweir.topic.filtered_message import FilteredMessage
from hubweir.topic.rule import Rule
from hubweir.topic.rule_matching import ChangedCopy, RuleFailure, copy_of, filter_failure, matches
from hubweir.topic.simple_filter import (
    ALWAYS,
    SYSTEM_SCOPE,
    USER_SCOPE,
    Check,
    Column,
    Conjunction,
    conjunctions_of,
    key_of,
)
from hubweir.topic.sql_evaluate import Evaluation, NewUuid
from hubweir.topic.sql_syntax import Predicate
from hubweir.topic.sql_values import EvaluationFailed, Value, value_of

S = TypeVar("S", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicCopies(Generic[S]):
    """What the subscriptions of a topic get of one message.

    plain: who gets a copy of it as it came. changed, failed: copies of rules with an action, and rules that could not
    be evaluated, each with its subscription, in the order in which the rules were put in.
    """

    plain: tuple[S, ...]
    changed: tuple[tuple[S, ChangedCopy], ...] = ()
    failed: tuple[tuple[S, RuleFailure], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class _Placed(Generic[S]):
    """A rule of a subscription. number: rises with each rule that is put in."""

    subscription: S
    rule: Rule
    number: int


@dataclass(frozen=True, slots=True, eq=False)
class _Spot(Generic[S]):
    """What has to be true besides the keys, for a rule to match."""

    checks: tuple[Check, ...]
    rest: tuple[Predicate, ...]
    placed: _Placed[S]


# By the key of the column, or a tuple with the key of each; by () where there is no column.
_ByKey = dict[object, list[_Spot[S]]]
# Tables that begin with one column, by their columns.
_Tables = dict[tuple[Column, ...], _ByKey[S]]


class TopicRules(Generic[S]):
    """The rules of a topic's subscriptions. S: what a subscription is known by, such as its name or number."""

    def __init__(self, new_id: NewUuid) -> None:
        self._new_id = new_id
        self._next_number = 0
        self._by_subscription: dict[S, dict[str, _Placed[S]]] = {}
        # By the property, folded and without its scope, that their tables begin with.
        self._user_tables: dict[str, _Tables[S]] = {}
        self._system_tables: dict[str, _Tables[S]] = {}
        self._evaluated: dict[int, _Placed[S]] = {}
        # Rules that match every message, with an action and without; whose the latter are, None: to be found again.
        self._always_changing: dict[int, _Placed[S]] = {}
        self._always: dict[int, _Placed[S]] = {}
        self._get_all: tuple[S, ...] | None = ()

    def put(self, subscription: S, rule: Rule) -> None:
        """Take a rule in, in the place of the one of its name when the subscription has one."""
        self.remove(subscription, rule.name)
        placed = _Placed(subscription, rule, self._next_number)
        self._next_number += 1
        self._by_subscription.setdefault(subscription, {})[fold(rule.name)] = placed
        conjunctions = _found_by_look_up(rule)
        if conjunctions is None:
            self._evaluated[placed.number] = placed
        elif conjunctions == ALWAYS:
            (self._always_changing if rule.action else self._always)[placed.number] = placed
            self._get_all = None
        else:
            for conjunction in conjunctions:
                spot = _Spot(conjunction.checks, conjunction.rest, placed)
                by_property, name, columns = self._table_of(conjunction)
                by_key = by_property.setdefault(name, {}).setdefault(columns, {})
                for key in _keys_of(conjunction):
                    by_key.setdefault(key, []).append(spot)

    def remove(self, subscription: S, rule_name: str) -> bool:
        """Take out the rule of that name in any case; False when the subscription has none."""
        rules = self._by_subscription.get(subscription, {})
        placed = rules.pop(fold(rule_name), None)
        if placed is None:
            return False
        if not rules:
            del self._by_subscription[subscription]
        self._get_all = None
        for dictionary in (self._always, self._always_changing, self._evaluated):
            dictionary.pop(placed.number, None)
        conjunctions = _found_by_look_up(placed.rule)
        if conjunctions != ALWAYS:
            for conjunction in conjunctions or ():
                self._take_out(conjunction, placed)
        return True

    def remove_all(self, subscription: S) -> None:
        """Take out the rules of a subscription, which is gone."""
        for rule_name in list(self._by_subscription.get(subscription, ())):
            self.remove(subscription, rule_name)

    @property
    def who_gets_all(self) -> tuple[S, ...] | None:
        """Whoever gets a plain copy of every message; None when a message has to be looked at to tell."""
        looks = self._user_tables or self._system_tables or self._evaluated or self._always_changing
        return None if looks else self._all()

    @property
    def evaluated_count(self) -> int:
        """How many rules cost every message an evaluation, or a copy of its own."""
        return len(self._evaluated) + len(self._always_changing)

    def _all(self) -> tuple[S, ...]:
        if self._get_all is None:
            self._get_all = tuple(dict.fromkeys(placed.subscription for placed in self._always.values()))
        return self._get_all

    def copies(self, messages: Iterable[FilteredMessage]) -> list[TopicCopies[S]]:
        """What the subscriptions get of each message. The messages are not kept."""
        return [self._copies_of(message) for message in messages]

    def _copies_of(self, message: FilteredMessage) -> TopicCopies[S]:
        found = dict(self._always_changing)
        failed: dict[int, tuple[S, RuleFailure]] = {}
        try:
            self._look_up(message, found)
            self._evaluate(self._evaluated, message, found, failed)
        except EvaluationFailed:
            # The message cannot be read, or not all of it: each rule that asks for what cannot be read has failed.
            found.clear()
            for rules in self._by_subscription.values():
                self._evaluate({placed.number: placed for placed in rules.values()}, message, found, failed)
        if not found and not failed:
            return TopicCopies(self._all())
        plain = dict.fromkeys(self._all())
        changed: dict[int, tuple[S, ChangedCopy]] = {}
        for number, placed in found.items():
            if placed.rule.action is None:
                plain[placed.subscription] = None
                continue
            made = copy_of(placed.rule, message, self._new_id)
            if isinstance(made, ChangedCopy):
                changed[number] = (placed.subscription, made)
            else:
                failed[number] = (placed.subscription, made)
        return TopicCopies(tuple(plain), _in_order(changed), _in_order(failed))

    def _look_up(self, message: FilteredMessage, found: dict[int, _Placed[S]]) -> None:
        """Put the rules in found that lie in tables and match. Raises EvaluationFailed for an unreadable message."""
        values = _Values(message)
        for tables in self._tables_met(message):
            for columns, by_key in tables.items():
                if len(columns) == 1:
                    key = key_of(values[columns[0]])
                else:
                    key = tuple([key_of(values[column]) for column in columns])
                for spot in by_key.get(key, ()):
                    for check in spot.checks:
                        value = values[check.column]
                        if type(value) not in check.types or not check.holds(value):
                            break
                    else:
                        if not spot.rest or self._rest_holds(spot.rest, message):
                            found[spot.placed.number] = spot.placed

    def _tables_met(self, message: FilteredMessage) -> Iterator[_Tables[S]]:
        """The tables whose first column the message may have."""
        if self._user_tables:
            for name in message.user_properties:
                tables = self._user_tables.get(name)
                if tables is not None:
                    yield tables
        yield from self._system_tables.values()

    def _rest_holds(self, rest: tuple[Predicate, ...], message: FilteredMessage) -> bool:
        run = Evaluation(message, self._new_id)
        return all(run.truth(predicate) is True for predicate in rest)

    def _evaluate(
        self,
        rules: Mapping[int, _Placed[S]],
        message: FilteredMessage,
        found: dict[int, _Placed[S]],
        failed: dict[int, tuple[S, RuleFailure]],
    ) -> None:
        """Ask each rule by itself, and put it in found or in failed when it matches or cannot tell."""
        for number, placed in rules.items():
            try:
                if matches(placed.rule, message, self._new_id):
                    found[number] = placed
            except EvaluationFailed as error:
                failed[number] = (placed.subscription, filter_failure(placed.rule, error))

    def _table_of(self, conjunction: Conjunction) -> tuple[dict[str, _Tables[S]], str, tuple[Column, ...]]:
        """The dictionary in which tables with the same first column lie, the name there, and the table's columns."""
        columns = tuple(column for column, _ in conjunction.keys)
        first = columns[0] if columns else conjunction.checks[0].column
        if first.startswith(SYSTEM_SCOPE):
            return self._system_tables, first.removeprefix(SYSTEM_SCOPE), columns
        return self._user_tables, first.removeprefix(USER_SCOPE), columns

    def _take_out(self, conjunction: Conjunction, placed: _Placed[S]) -> None:
        """Remove a rule's conjunction from its table, and the table when it was the last one in it."""
        by_property, name, columns = self._table_of(conjunction)
        tables = by_property.pop(name, {})
        by_key = tables.pop(columns, {})
        for key in _keys_of(conjunction):
            left = [spot for spot in by_key.pop(key, ()) if spot.placed is not placed]
            if left:
                by_key[key] = left
        if by_key:
            tables[columns] = by_key
        if tables:
            by_property[name] = tables


class _Values(dict[Column, Value]):
    """The values of one message by column, each read when it is first asked for."""

    def __init__(self, message: FilteredMessage) -> None:
        super().__init__()
        self._message = message

    def __missing__(self, column: Column) -> Value:
        if column.startswith(USER_SCOPE):
            value = value_of(self._message.user_properties.get(column[len(USER_SCOPE) :]))
        else:
            value = self._message.system_property(column[len(SYSTEM_SCOPE) :])
        self[column] = value
        return value


def _found_by_look_up(rule: Rule) -> tuple[Conjunction, ...] | None:
    """The conjunctions under which the rule is found; None for one that has to be evaluated for each message."""
    conjunctions = conjunctions_of(rule.filter)
    if conjunctions is None or conjunctions == ALWAYS:
        return conjunctions
    return conjunctions if all(each.keys or each.checks for each in conjunctions) else None


def _keys_of(conjunction: Conjunction) -> Iterable[object]:
    """The keys of its table under which a conjunction lies."""
    choices = [keys for _, keys in conjunction.keys]
    return choices[0] if len(choices) == 1 else product(*choices)


def _in_order(by_number: dict[int, T]) -> tuple[T, ...]:
    return tuple([by_number[number] for number in sorted(by_number)])
