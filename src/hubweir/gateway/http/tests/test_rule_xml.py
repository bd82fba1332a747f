"""Rules of subscriptions over HTTP: filters, actions and values come back as clients read them."""

from __future__ import annotations

import pytest

from hubweir.gateway.http.rule_xml import CORRELATION_FIELDS, subscription_rule_content
from hubweir.gateway.http.strict_xml import read_xml
from hubweir.gateway.http.tests.messaging_forms import SUBSCRIPTION, TOPIC, atom, described, rule
from hubweir.gateway.http.tests.service import Http
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    NamedValue,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)


def value(kind: str, written: str) -> str:
    return rule(
        '<Filter p4:type="SqlFilter"><SqlExpression>a = @v</SqlExpression><Parameters><KeyValueOfstringanyType>'
        f'<Key>@v</Key><Value p4:type="l28:{kind}" xmlns:l28="http://www.w3.org/2001/XMLSchema">{written}</Value>'
        "</KeyValueOfstringanyType></Parameters></Filter>",
        "p4",
    )


@pytest.fixture
def subscription(clean: Http) -> str:
    clean.call("PUT", "/t", described(TOPIC))
    clean.call("PUT", "/t/subscriptions/s", described(SUBSCRIPTION))
    return "/t/subscriptions/s"


@pytest.mark.parametrize(
    ("kind", "sent", "told"),
    [
        ("int", "7", 'i:type="d6p1:int" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">7</Value>'),
        ("long", "7", ">7</Value>"),
        ("long", "-2147483647", 'i:type="d6p1:int"'),
        ("long", "2147483648", 'i:type="d6p1:double" xmlns:d6p1="http://www.w3.org/2001/XMLSchema">2147483648</Value>'),
        ("double", "1.5", 'i:type="d6p1:double"'),
        ("boolean", "1", ">true</Value>"),
        ("string", " a &lt; b ", "> a &lt; b </Value>"),
        ("dateTime", "2026-01-02T03:04:05.678Z", 'i:type="d6p1:dateTime"'),
        ("duration", "P1DT2S", 'i:type="d6p1:duration"'),
    ],
)
def test_values_keep_their_type_and_a_long_becomes_what_clients_read(
    http: Http, subscription: str, kind: str, sent: str, told: str
) -> None:
    made = http.call("PUT", f"{subscription}/rules/r", value(kind, sent))
    assert made.status == 201 and told in made.text, made.text


@pytest.mark.parametrize(
    ("kind", "sent"),
    [("int", "x"), ("int", "1.5"), ("long", "9" * 19), ("double", "1_0"), ("boolean", "yes"),
     ("dateTime", "2026-13-01T00:00:00"), ("dateTime", "today"), ("duration", "long"), ("decimal", "1"), ("", "1")],
)  # fmt: skip
def test_values_that_are_none_of_their_type_are_refused(http: Http, subscription: str, kind: str, sent: str) -> None:
    assert http.call("PUT", f"{subscription}/rules/r", value(kind, sent)).status == 400


def test_a_correlation_filter_tells_only_what_it_has(http: Http, subscription: str) -> None:
    inside = "".join(f"<{name}>{name.lower()}</{name}>" for name in CORRELATION_FIELDS)
    full = http.call("PUT", f"{subscription}/rules/full", rule(f'<Filter i:type="CorrelationFilter">{inside}</Filter>'))
    assert inside in full.text
    none = http.call("PUT", f"{subscription}/rules/none", rule('<Filter i:type="CorrelationFilter"/>'))
    assert '<Filter i:type="CorrelationFilter"></Filter><Action i:type="EmptyRuleAction"/>' in none.text


@pytest.mark.parametrize(
    ("default", "name", "needle"),
    [
        ('<Filter i:type="FalseFilter"/><Name>mine</Name>', "mine", 'i:type="FalseFilter"><SqlExpression>1&gt;1<'),
        ('<Filter i:type="SqlFilter"><SqlExpression>a = 1</SqlExpression></Filter>', "$Default", "a = 1"),
        ('<Action i:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression></Action><Name>act</Name>', "act",
         'i:type="TrueFilter"><SqlExpression>1=1</SqlExpression>'),
    ],
)  # fmt: skip
def test_a_subscription_begins_with_the_rule_that_it_asks_for(
    clean: Http, default: str, name: str, needle: str
) -> None:
    clean.call("PUT", "/t", described(TOPIC))
    inside = f"<DefaultRuleDescription>{default}</DefaultRuleDescription>"
    made = clean.call("PUT", "/t/subscriptions/s", described(SUBSCRIPTION, inside))
    assert made.status == 201 and "DefaultRule" not in made.text
    rules = clean.call("GET", "/t/subscriptions/s/rules/")
    assert atom(rules.body, "title")[1:] == [name] and needle in rules.text


def test_a_rule_that_came_over_amqp_with_what_no_xml_can_hold_is_told_all_the_same() -> None:
    said = NamedValue("@v\x02", ValueType.STRING, "\x03")
    chosen = SqlFilterDescription("a = '\x01' AND b = @v", (said,))
    told = read_xml(subscription_rule_content(SubscriptionRuleDescription("r", chosen)).encode())
    expression = told.find("SqlExpression")
    assert expression is not None and expression.text == "a = '\ufffd' AND b = @v"
    fields = CorrelationFilterDescription(label="\x01\r\n")
    told = read_xml(subscription_rule_content(SubscriptionRuleDescription("r", fields)).encode())
    label = told.find("Label")
    assert label is not None and label.text == "\ufffd\r\n"
