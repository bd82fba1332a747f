"""What requests on queues, topics, subscriptions and rules hold, and what their answers say, for tests of them."""

from __future__ import annotations

from xml.etree import ElementTree

from hubweir.gateway.http.atom import ATOM, SERVICE_BUS

ANY = {"If_Match": "*"}
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"


def described(kind: str, inside: str = "", prefix: str = "i") -> str:
    return (
        f"<?xml version='1.0' encoding='utf-8'?>"
        f'<ns0:entry xmlns:ns0="{ATOM}" xmlns="{SERVICE_BUS}" xmlns:{prefix}="{INSTANCE}">'
        f'<ns0:content type="application/xml">'
        f"<{kind}>{inside}</{kind}></ns0:content></ns0:entry>"
    )


QUEUE, TOPIC, SUBSCRIPTION = "QueueDescription", "TopicDescription", "SubscriptionDescription"


def rule(inside: str, prefix: str = "i") -> str:
    return described("RuleDescription", inside, prefix)


def sql_filter(text: str) -> str:
    return f'<Filter i:type="SqlFilter"><SqlExpression>{text}</SqlExpression></Filter>'


def sql_action(text: str) -> str:
    return f'<Action i:type="SqlRuleAction"><SqlExpression>{text}</SqlExpression></Action>'


def content(body: bytes, kind: str) -> ElementTree.Element:
    found = ElementTree.fromstring(body).find(f".//{{{SERVICE_BUS}}}{kind}")
    assert found is not None, body
    return found


def text(body: bytes, name: str) -> str | None:
    return ElementTree.fromstring(body).findtext(f".//{{{SERVICE_BUS}}}{name}")


def atom(body: bytes, name: str) -> list[str | None]:
    return [each.text for each in ElementTree.fromstring(body).iter(f"{{{ATOM}}}{name}")]


def names(element: ElementTree.Element) -> list[str]:
    return [child.tag.rpartition("}")[2] for child in element]


def detail(body: bytes) -> str:
    return ElementTree.fromstring(body).findtext("Detail") or ""
