"""Filters of a subscription through the pages: made, changed, deleted, and what the topic thinks of them is told."""

import pytest

from hubweir.gateway.amqp.tests.world import World
from hubweir.namespace.rights import Rights
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import NamedValue, SqlFilterDescription, SubscriptionRuleDescription, ValueType
from hubweir.namespace.topic_description import TopicDescription
from hubweir.portal.tests.browser import Browser, signed_in, text_of

WHERE = "news/Subscriptions/all"
RED = {"kind": "sql", "expression": "colour = 'red'", "action": "SET tea = @n", "action_parameters": "@n (int): 7"}


@pytest.fixture
def world() -> World:
    world = World(hubs={"orders": 1})
    world.create(TopicDescription("news"))
    world.create(SubscriptionDescription(WHERE))
    return world


@pytest.fixture
def browser(world: World) -> Browser:
    return signed_in(world)


def names(world: World) -> list[str]:
    return [rule.name for rule in world.namespace.subscription_rules(WHERE).listed()]


def received(world: World, browser: Browser, **properties: str) -> str:
    lines = "\n".join(f"{name}: {value}" for name, value in properties.items())
    browser.post("send/news", {"body": "tea", "properties": lines})
    world.run_for(1_000)
    return text_of(browser.get(f"messages/{WHERE}"))


def test_a_filter_is_made_and_decides_what_comes_and_its_action_changes_it(world: World, browser: Browser) -> None:
    assert "It is saved." not in text_of(browser.get(f"rules/{WHERE}"))
    page = browser.follow(browser.post(f"rule/{WHERE}", {**RED, "name": "red"}))
    assert "The filter is saved." in text_of(page) and names(world) == ["$Default", "red"]
    browser.follow(browser.post(f"delete-rule/{WHERE}", {"name": "$Default"}))
    assert names(world) == ["red"]
    assert "No messages here" in received(world, browser, colour="blue")
    assert "tea 7" in received(world, browser, colour="red")


def test_a_filter_is_changed_in_its_place_and_keeps_its_name(world: World, browser: Browser) -> None:
    browser.post(f"rule/{WHERE}", {**RED, "name": "red"})
    form = browser.get(f"rule/{WHERE}?rule=RED")
    assert "colour = &#39;red&#39;" in form.text and 'name="known" value="red"' in form.text
    browser.follow(browser.post(f"rule/{WHERE}", {"kind": "false", "known": "red", "name": "other"}))
    assert names(world) == ["$Default", "red"] and "no message" in text_of(browser.get(f"rules/{WHERE}"))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "sql", "expression": "colour ==== 1"}, "colour ==== 1"),
        ({**RED, "action_parameters": "@n (int): seven"}, "is no int"),
        ({**RED, "name": "$Default"}, "$Default"),
        ({**RED, "name": ""}, "name"),
        ({"kind": "sql", "expression": "x" * 1_025}, "1 to 1024"),
        ({"kind": "false", "known": "gone"}, "could not be found"),
    ],
)
def test_what_cannot_be_is_told_beside_what_was_entered(
    world: World, browser: Browser, fields: dict[str, str], told: str
) -> None:
    answer = browser.post(f"rule/{WHERE}", {"name": "new", **fields})
    assert answer.status in (400, 404, 409) and "That did not work." in text_of(answer)
    assert told in text_of(answer).replace("’", "'"), text_of(answer)
    assert names(world) == ["$Default"]


def test_a_rule_that_a_form_cannot_hold_is_shown_and_not_edited(world: World, browser: Browser) -> None:
    odd = SqlFilterDescription("x = @a", (NamedValue("@a", ValueType.STRING, "two\nlines"),))
    rule = SubscriptionRuleDescription("odd", odd)
    world.wait(lambda done: world.gateway.subscription_rules.create(WHERE, rule, done))
    answer = browser.get(f"rule/{WHERE}?rule=odd")
    assert answer.status in (400, 403)
    assert "change it with a client" in text_of(answer) and "x = @a" in text_of(answer)


def test_names_and_texts_of_a_rule_are_no_markup(world: World, browser: Browser) -> None:
    browser.post(f"rule/{WHERE}", {"kind": "sql", "expression": "a = '<script>alert(1)</script>'", "name": "x"})
    for page in (f"rules/{WHERE}", f"rule/{WHERE}?rule=x", f"entity/{WHERE}"):
        text = browser.get(page).text
        assert "<script>alert" not in text and "&lt;script&gt;alert(1)" in text


def test_other_kinds_of_entities_and_rules_that_are_not_there(browser: Browser) -> None:
    assert browser.get("rules/news").status == 404 and browser.get("rules/orders").status == 404
    assert browser.get(f"rule/{WHERE}?rule=none").status == 404
    assert browser.post(f"delete-rule/{WHERE}", {"name": "none"}).status == 404


def test_only_who_manages_the_subscription_changes_its_filters(world: World) -> None:
    world.set_rule("uses", Rights.SEND | Rights.LISTEN, key="key of uses")
    browser = signed_in(world, "uses", "key of uses")
    browser.get("open")
    assert browser.get(f"rules/{WHERE}").status == 403
    assert browser.post(f"delete-rule/{WHERE}", {"name": "$Default"}).status == 403 and names(world) == ["$Default"]
