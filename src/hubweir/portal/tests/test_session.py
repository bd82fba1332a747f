"""What a cookie proves: each way in which one is no good, beside the good one."""

import base64
import json
from typing import Any

import pytest

from hubweir.auth.shared_access_signature import make_token
from hubweir.auth.sign_in_ledger import LIFETIME_MS
from hubweir.gateway.amqp.tests.world import KEY, ROOT, World
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleKey, RuleLevel
from hubweir.namespace.secret import Secret
from hubweir.portal.session import IDLE_MS, PortalSession, read_cookie, write_cookie


@pytest.fixture
def world() -> World:
    return World(hubs={"orders": 1, "bills": 1})


def session(world: World, **changes: Any) -> PortalSession:
    now_ms = world.env.now_ms()
    values = {
        "namespace": "hubweir", "rule": ROOT, "entity": "", "token": "", "signed_in_ms": now_ms, "used_ms": now_ms,
        "nonce": "n",
    }  # fmt: skip
    return PortalSession(**{**values, **changes})


def token(world: World, path: str = "", rule: str = ROOT, key: str = KEY, seconds: int = 600) -> str:
    return make_token(f"sb://localhost/{path}", rule, key, world.env.now_ms() // 1000 + seconds)


def test_a_cookie_proves_the_rights_that_its_rule_has_now(world: World) -> None:
    cookie = write_cookie(session(world), Secret(KEY))
    identity = read_cookie(cookie, world.process)
    assert identity is not None and identity.rights == Rights.ALL
    assert identity.may(Rights.MANAGE) and identity.may(Rights.SEND, "orders")
    world.set_rule(ROOT, Rights.LISTEN)
    identity = read_cookie(cookie, world.process)
    assert identity is not None and not identity.may(Rights.SEND, "orders") and identity.may(Rights.LISTEN, "orders")


def test_a_rule_of_one_entity_is_for_that_and_what_lies_below(world: World) -> None:
    world.set_rule("one", Rights.ALL, hub="orders", key="its key")
    identity = read_cookie(write_cookie(session(world, rule="one", entity="orders"), Secret("its key")), world.process)
    assert identity is not None
    assert identity.may(Rights.MANAGE, "Orders") and identity.may(Rights.MANAGE, "orders/ConsumerGroups/x")
    for other in ("", "bills", "orders2", "order"):
        assert not identity.may(Rights.MANAGE, other), other


def test_a_session_ends_when_its_key_is_renewed_and_not_with_the_other_key(world: World) -> None:
    world.set_rule("one", Rights.ALL, key="first")
    cookie = write_cookie(session(world, rule="one"), Secret("first"))
    renew = lambda level, which: level.renew("one", which, Secret("new"))  # noqa: E731
    world.wait(lambda done: world.gateway.keeper.change_rules(None, lambda at: renew(at, RuleKey.SECONDARY), done))
    assert read_cookie(cookie, world.process) is not None
    world.wait(lambda done: world.gateway.keeper.change_rules(None, lambda at: renew(at, RuleKey.PRIMARY), done))
    assert read_cookie(cookie, world.process) is None


def test_a_session_ends_when_its_rule_or_entity_is_deleted(world: World) -> None:
    world.set_rule("one", Rights.ALL, key="first")
    cookie = write_cookie(session(world, rule="one"), Secret("first"))

    def remove(level: RuleLevel) -> Any:
        return level.remove("one")

    world.wait(lambda done: world.gateway.keeper.change_rules(None, remove, done))
    assert read_cookie(cookie, world.process) is None


def test_a_session_ends_idle_and_when_it_is_old(world: World) -> None:
    idle = write_cookie(session(world), Secret(KEY))
    now_ms = world.env.now_ms()
    old = write_cookie(session(world, signed_in_ms=now_ms - LIFETIME_MS + IDLE_MS // 2), Secret(KEY))
    world.run_for(IDLE_MS // 2)
    assert read_cookie(idle, world.process) and read_cookie(old, world.process)
    world.run_for(1)
    assert read_cookie(idle, world.process) and read_cookie(old, world.process) is None
    world.run_for(IDLE_MS // 2)
    assert read_cookie(idle, world.process) is None


def test_a_session_from_the_future_is_none(world: World) -> None:
    later_ms = world.env.now_ms() + 60_001
    assert read_cookie(write_cookie(session(world, used_ms=later_ms), Secret(KEY)), world.process) is None


def test_a_session_of_a_token_has_its_rights_and_ends_with_it(world: World) -> None:
    world.set_rule("sender", Rights.SEND, key="send key")
    signature = token(world, "orders", "sender", "send key", seconds=60)
    cookie = write_cookie(session(world, rule="sender", token=signature), Secret("send key"))
    identity = read_cookie(cookie, world.process)
    assert identity is not None and identity.path == ("orders",)
    assert identity.may(Rights.SEND, "orders") and not identity.may(Rights.LISTEN, "orders")
    assert not identity.may(Rights.SEND, "bills")
    world.run_for(60_000)
    assert read_cookie(cookie, world.process) is None


def test_a_changed_byte_anywhere_makes_it_worthless(world: World) -> None:
    cookie = write_cookie(session(world), Secret(KEY))
    assert read_cookie(cookie, world.process) is not None
    for at in range(len(cookie)):
        changed = cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :]
        assert read_cookie(changed, world.process) is None, at


def test_what_somebody_made_up_is_worthless(world: World) -> None:
    text = base64.urlsafe_b64encode(json.dumps({"namespace": "hubweir"}).encode()).decode().rstrip("=")
    good = write_cookie(session(world), Secret(KEY))
    made_up = ["", ".", "a.b", f"{text}.", f"{text}.{text}", good + ".", good.partition(".")[0], "é.é", "x" * 10_000]
    made_up += [good + "=", good.replace(".", ". "), write_cookie(session(world), Secret("wrong"))]
    made_up.append(write_cookie(session(world, rule="none"), Secret("")))
    made_up.append(write_cookie(session(world, namespace="other"), Secret(KEY)))
    for value in made_up:
        assert read_cookie(value, world.process) is None, value[:40]


def test_the_key_of_one_level_signs_nothing_of_another(world: World) -> None:
    world.set_rule("one", Rights.LISTEN, hub="orders", key="its key")
    world.set_rule("one", Rights.ALL, key="namespace key")
    for entity, key in (("", "its key"), ("orders", "namespace key"), ("bills", "its key"), ("bills", "namespace key")):
        assert read_cookie(write_cookie(session(world, rule="one", entity=entity), Secret(key)), world.process) is None


def test_a_session_is_no_token_and_a_token_is_no_session(world: World) -> None:
    signature = token(world)
    assert read_cookie(signature, world.process) is None
    cookie = write_cookie(session(world), Secret(KEY))
    with pytest.raises(Exception, match="MalformedToken"):
        world.gateway.authorization.verify(f"SharedAccessSignature {cookie}")
