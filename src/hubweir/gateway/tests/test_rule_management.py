"""Rules as the doors change them: keys made here, and the one rule that belongs to the settings."""

from __future__ import annotations

import pytest

from hubweir.errors import ENTITY_EXISTS, NOT_ALLOWED, NOT_FOUND, ServiceError
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.gateway.settings import GatewaySettings
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey
from hubweir.namespace.secret import Secret

NONE = Secret("")


@pytest.fixture
def world() -> World:
    return World(settings=GatewaySettings(settings_rule=ROOT))


def test_keys_that_are_not_given_are_made_and_differ(world: World) -> None:
    rules = world.gateway.rules
    made = world.wait(lambda done: rules.create("hub", "r", Rights.SEND, done, primary=NONE, secondary=NONE))
    keys = {made.primary.reveal(), made.secondary.reveal()}
    renewed = world.wait(lambda done: rules.renew("hub", "r", RuleKey.SECONDARY, done, secret=NONE))
    keys.add(renewed.secondary.reveal())
    assert len(keys) == 3
    assert all(len(key) == 44 for key in keys)
    assert renewed.primary.reveal() == made.primary.reveal()


def test_given_keys_are_taken(world: World) -> None:
    rules = world.gateway.rules
    given = {"primary": Secret("p"), "secondary": Secret("s")}
    made = world.wait(lambda done: rules.create(None, "r", Rights.ALL, done, **given))
    assert (made.primary.reveal(), made.secondary.reveal()) == ("p", "s")
    again = world.wait(lambda done: rules.create(None, "R", Rights.SEND, done, **given))
    assert isinstance(again, ServiceError) and again.condition is ENTITY_EXISTS
    assert world.wait(lambda done: rules.renew(None, "R", RuleKey.PRIMARY, done, secret=Secret("n"))).name == "r"
    assert rules.rule(None, "r").primary.reveal() == "n"
    assert world.wait(lambda done: rules.delete(None, "r", done)).name == "r"
    with pytest.raises(ServiceError) as gone:
        rules.delete(None, "r", lambda result: None)
    assert gone.value.condition is NOT_FOUND


def test_the_rule_of_the_settings_changes_in_its_secondary_key_only(world: World) -> None:
    """The next start would take the change back: a primary key that leaked would work again."""
    rules, ignore = world.gateway.rules, lambda result: None
    for change in (
        lambda: rules.delete(None, ROOT.upper(), ignore),
        lambda: rules.change(None, ROOT, Rights.SEND, ignore),
        lambda: rules.renew(None, ROOT, RuleKey.PRIMARY, ignore, secret=NONE),
    ):
        with pytest.raises(ServiceError, match="A start of the service") as refusal:
            change()
        assert refusal.value.condition is NOT_ALLOWED
    renewed = world.wait(lambda done: rules.renew(None, ROOT, RuleKey.SECONDARY, done, secret=NONE))
    assert (renewed.primary.reveal(), len(renewed.secondary.reveal())) == (KEY, 44)
    own = world.wait(lambda done: rules.create("hub", ROOT, Rights.SEND, done, primary=NONE, secondary=NONE))
    assert world.wait(lambda done: rules.delete("hub", ROOT, done)).name == own.name
