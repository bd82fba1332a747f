"""What the whole world expects of a key behind an answer: the newest one, or one on its way beside it (P17)."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.errors import STORE_OFFLINE, TIMED_OUT, Condition, ServiceError
from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.testing.history_values import Violation
from tests.simulation.world_catalog import GUEST, CatalogChanges


class OneProcess:
    """Stands where the whole world stands: one process that serves, and answers that come when a test says so."""

    def __init__(self) -> None:
        self._service = World()
        rule = AuthorizationRuleDescription(GUEST, Rights.SEND, Secret("key 0"), Secret(""))
        self._keep(None, partial(RuleLevel.create, rule=rule))
        self.found: list[Violation] = []
        self._asked: list[tuple[Any, Callable[[Any], None]]] = []
        world: Any = SimpleNamespace(
            parts={0: SimpleNamespace(is_serving=True, gateway=self._service.gateway)},
            lives={0: (1_000, SimpleNamespace(process=None))},
            faults=SimpleNamespace(may_reach_the_supervisor=lambda process, for_ms: True),
            note=lambda text: None,
            found=self.found.append,
        )
        self._changes = CatalogChanges(world)

    def ask(self) -> None:
        """A client asks for the next key; nothing of it reaches the keeper yet."""
        process = SimpleNamespace(context=contextvars.copy_context(), call=lambda step: step())
        keeper = SimpleNamespace(change_rules=lambda _, change, done: self._asked.append((change, done)))
        self._changes._renew(process, SimpleNamespace(keeper=keeper))  # type: ignore[arg-type]  # what it uses of one

    def keep(self, key: int) -> None:
        """The keeper makes it, and the process goes by it."""
        self._keep(None, self._asked[key - 1][0])

    def answer(self, key: int, result: ServiceError | None = None) -> None:
        """Whoever asked for it hears that it holds, or why not."""
        self._asked[key - 1][1](result)

    def _keep(self, name: None, change: Any) -> None:
        answers: list[Any] = []
        self._service.gateway.keeper.change_rules(name, change, answers.append)
        self._service.run_for(200)
        assert isinstance(answers[0], RuleLevel), answers


def test_a_key_that_was_asked_for_before_may_reach_the_keeper_behind_a_later_one() -> None:
    one = OneProcess()
    one.ask()
    one.ask()
    one.keep(2)
    one.keep(1)
    one.answer(2)
    assert one.found == []


def test_control_a_process_that_does_not_know_an_answered_key_is_found() -> None:
    one = OneProcess()
    one.ask()
    one.answer(1)
    assert len(one.found) == 1


def test_control_a_key_that_was_answered_before_the_next_was_asked_for_holds_no_more() -> None:
    one = OneProcess()
    one.ask()
    one.keep(1)
    one.answer(1)
    assert one.found == []
    one.ask()
    one.answer(2)
    assert len(one.found) == 1


@pytest.mark.parametrize(("condition", "found"), [(STORE_OFFLINE, 1), (TIMED_OUT, 0)])
def test_control_of_keys_without_a_yes_only_one_of_unknown_fate_may_hold_behind_a_later_answer(
    condition: Condition, found: int
) -> None:
    one = OneProcess()
    one.ask()
    one.answer(1, ServiceError(condition, "as a keeper that is away, or went away, says"))
    one.ask()
    one.keep(1)
    one.answer(2)
    assert len(one.found) == found
