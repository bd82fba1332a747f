"""atom_documents.py: what administration writes, and what it makes of the service's answers."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from hubweir.client.atom_documents import (
    ATOM,
    INSTANCE,
    SERVICE_BUS,
    EntityType,
    RulePart,
    entity_of,
    entries_of,
    entry_document,
    error_of,
)
from hubweir.errors import (
    ARGUMENT_ERROR,
    CONDITIONS,
    ENTITY_EXISTS,
    INTERNAL_ERROR,
    NOT_FOUND,
    PRECONDITION_FAILED,
    RESOURCE_LIMIT,
    SERVER_BUSY,
    UNAUTHORIZED,
    Condition,
    ServiceError,
)
from hubweir.namespace.rights import Rights

COUNTS = "http://schemas.microsoft.com/netservices/2011/06/servicebus"


def entry(inside: str, *, kind: str = "QueueDescription", title: str = "orders") -> str:
    """An entry as the service answers it."""
    return (
        f'<entry xmlns="{ATOM}"><id>x</id><title type="text">{title}</title><content type="application/xml">'
        f'<{kind} xmlns="{SERVICE_BUS}" xmlns:i="{INSTANCE}" xmlns:d="{COUNTS}">{inside}</{kind}></content></entry>'
    )


@pytest.mark.parametrize(
    ("kind", "parent", "path"),
    [
        (EntityType.QUEUE, "", "$Resources/queues"),
        (EntityType.TOPIC, "", "$Resources/topics"),
        (EntityType.SUBSCRIPTION, "news", "news/Subscriptions"),
        (EntityType.RULE, "news/Subscriptions/all", "news/Subscriptions/all/Rules"),
    ],
)
def test_each_kind_is_listed_at_its_place(kind: EntityType, parent: str, path: str) -> None:
    assert kind.list_path(parent) == path


def test_what_is_written_has_its_members_in_order_with_their_texts_and_the_xml_behind_them() -> None:
    members = {"LockDuration": "PT30S", "UserMetadata": "<a & b>"}
    inside = '<Filter i:type="TrueFilter"/>'
    root = ElementTree.fromstring(entry_document(EntityType.RULE, members, inside))
    [description] = root.iter(f"{{{SERVICE_BUS}}}RuleDescription")
    assert [(each.tag, each.text) for each in description] == [
        (f"{{{SERVICE_BUS}}}LockDuration", "PT30S"),
        (f"{{{SERVICE_BUS}}}UserMetadata", "<a & b>"),
        (f"{{{SERVICE_BUS}}}Filter", None),
    ]
    assert description[2].get(f"{{{INSTANCE}}}type") == "TrueFilter"


def test_an_entry_is_its_name_its_members_in_order_and_its_counts() -> None:
    counts = "<CountDetails><d:ActiveMessageCount>3</d:ActiveMessageCount><d:Dead/></CountDetails>"
    inside = f"<LockDuration>PT1M</LockDuration><SizeInBytes>7</SizeInBytes>{counts}<UserMetadata/>"
    found = entity_of(entry(inside).encode())
    assert found.name == "orders"
    assert list(found.members.items()) == [("LockDuration", "PT1M"), ("SizeInBytes", "7"), ("UserMetadata", "")]
    assert found.counts == {"ActiveMessageCount": 3, "Dead": 0}
    assert (found.rules, found.filter, found.action) == ((), None, None)


def test_a_feed_is_its_entries_in_their_order() -> None:
    feed = f'<feed xmlns="{ATOM}"><title>all</title>{entry("", title="b")}{entry("", title="a")}</feed>'
    with pytest.raises(ServiceError):  # an entry whose description is empty is none of a queue, yet it is there
        entity_of(f'<entry xmlns="{ATOM}"><title>x</title></entry>'.encode())
    assert [each.name for each in entries_of(feed.encode())] == ["b", "a"]
    assert entries_of(f'<feed xmlns="{ATOM}"/>'.encode()) == []


def test_authorization_rules_come_with_keys_that_are_not_shown() -> None:
    rule = (
        '<AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send</AccessRights>'
        "<AccessRights>Listen</AccessRights></Rights><KeyName>own</KeyName><PrimaryKey>secret-1</PrimaryKey>"
        "</AuthorizationRule>"
    )
    found = entity_of(entry(f"<AuthorizationRules>{rule}</AuthorizationRules>").encode())
    [own] = found.rules
    assert (own.name, own.rights) == ("own", Rights.SEND | Rights.LISTEN)
    assert (own.primary.reveal(), own.secondary.reveal()) == ("secret-1", "")
    assert "secret-1" not in repr(found) and "orders" in repr(found)
    assert "AuthorizationRules" not in found.members


def test_a_rule_has_its_filter_and_its_action_with_values_in_their_types() -> None:
    def pair(key: str, kind: str, text: str) -> str:
        return (
            f"<KeyValueOfstringanyType><Key>{key}</Key>"
            f'<Value i:type="{kind}" xmlns:x="urn:x">{text}</Value></KeyValueOfstringanyType>'
        )

    pairs = (
        pair("i", "x:int", "-7") + pair("l", "x:long", "8") + pair("d", "x:double", "1.5") + pair("s", "x:string", "9")
        + pair("yes", "x:boolean", "true") + pair("no", "x:boolean", "false") + pair("t", "x:dateTime", "2026-01-01")
    )  # fmt: skip
    inside = (
        '<Filter i:type="SqlFilter"><SqlExpression>a = @i</SqlExpression><CompatibilityLevel>20</CompatibilityLevel>'
        f'<Parameters>{pairs}</Parameters></Filter><Action i:type="SqlRuleAction"><SqlExpression>SET b = 1'
        "</SqlExpression></Action><Name>r</Name>"
    )
    found = entity_of(entry(inside, kind="RuleDescription", title="r").encode())
    values = {"i": -7, "l": 8, "d": 1.5, "s": "9", "yes": True, "no": False, "t": "2026-01-01"}
    assert found.filter == RulePart("SqlFilter", {"SqlExpression": "a = @i", "CompatibilityLevel": "20"}, values)
    assert {name: type(value) for name, value in found.filter.values.items()} == {
        name: type(value) for name, value in values.items()
    }
    assert found.action == RulePart("SqlRuleAction", {"SqlExpression": "SET b = 1"}, {})
    assert found.members == {"Name": "r"}


def test_an_empty_action_is_none() -> None:
    inside = '<Filter i:type="TrueFilter"/><Action i:type="EmptyRuleAction"/>'
    found = entity_of(entry(inside, kind="RuleDescription").encode())
    assert (found.filter, found.action) == (RulePart("TrueFilter", {}, {}), None)


@pytest.mark.parametrize(
    "answer",
    [
        "", "no xml", "<entry/>", f'<entry xmlns="{ATOM}"><content/></entry>',
        entry("<CountDetails><d:ActiveMessageCount>many</d:ActiveMessageCount></CountDetails>"),
        entry(
            '<Filter i:type="SqlFilter"><KeyValueOfstringanyType><Key>k</Key><Value i:type="x:int">x</Value>'
            "</KeyValueOfstringanyType></Filter>"
        ),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_read_is_a_fault_of_the_service(answer: str) -> None:
    with pytest.raises(ServiceError, match="The service's answer") as fault:
        entity_of(answer.encode())
    assert fault.value.condition is INTERNAL_ERROR


@pytest.mark.parametrize(
    ("status", "condition"),
    [
        (400, ARGUMENT_ERROR), (401, UNAUTHORIZED), (403, RESOURCE_LIMIT), (404, NOT_FOUND), (409, ENTITY_EXISTS),
        (412, PRECONDITION_FAILED), (503, SERVER_BUSY), (500, INTERNAL_ERROR), (418, INTERNAL_ERROR),
    ],
)  # fmt: skip
def test_a_refusal_has_the_condition_of_its_status_and_the_service_s_words(status: int, condition: Condition) -> None:
    told = error_of(status, f"<Error><Code>{status}</Code><Detail>SubCode=1. No.</Detail></Error>".encode())
    assert (told.condition, told.text) == (condition, "SubCode=1. No.")
    for empty in (b"", b"no xml", b"<Error/>"):
        assert error_of(status, empty).text == f"The service answered {status}."


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda each: each.symbol)
def test_a_refusal_that_names_its_condition_keeps_it(condition: Condition) -> None:
    told = error_of(condition.http, b"<Error><Detail>No.</Detail></Error>", symbol=condition.symbol)
    assert (told.condition, told.text) == (condition, "No.")


def test_a_condition_that_is_none_is_told_by_the_status() -> None:
    assert error_of(404, b"", symbol="someone:else").condition is NOT_FOUND
    assert error_of(404, b"", symbol="").condition is NOT_FOUND
