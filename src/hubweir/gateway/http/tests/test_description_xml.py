"""What the XML of a PUT asks for."""

from __future__ import annotations

import pytest

from hubweir.errors import ARGUMENT_ERROR, ARGUMENT_OUT_OF_RANGE, Condition, ServiceError
from hubweir.gateway.http.atom import ARRAYS, ATOM, SERVICE_BUS
from hubweir.gateway.http.description_xml import WantedHub, read_group, read_hub
from hubweir.namespace.entity import Availability
from hubweir.namespace.rights import Rights
from hubweir.namespace.secret import Secret


def new_key() -> Secret:
    return Secret("made here")


def hub(inside: str) -> bytes:
    return (
        f'<entry xmlns="{ATOM}"><content type="application/xml">'
        f'<EventHubDescription xmlns="{SERVICE_BUS}" xmlns:i="urn:i">{inside}</EventHubDescription></content></entry>'
    ).encode()


def test_nothing_asks_for_nothing() -> None:
    assert read_hub(b"", new_key) == WantedHub()
    assert read_hub(b" \r\n", new_key) == WantedHub()
    assert read_hub(hub(""), new_key) == WantedHub()
    assert read_hub(b"<EventHubDescription/>", new_key) == WantedHub()


def test_what_can_be_set_is_read_and_what_the_service_sets_is_passed_over() -> None:
    wanted = read_hub(
        hub(
            "<MessageRetentionInDays> 2 </MessageRetentionInDays><Status>Active</Status><CreatedAt>x</CreatedAt>"
            f'<UserMetadata/><PartitionCount>8</PartitionCount><PartitionIds xmlns:a="{ARRAYS}"><a:string>0</a:string>'
            "</PartitionIds><Unknown><PartitionCount>9</PartitionCount></Unknown>"
        ),
        new_key,
    )
    assert wanted == WantedHub(2, 8, None, Availability.ACTIVE, "")
    set_so = read_hub(hub("<Status>sendDisabled</Status><UserMetadata>a &lt; b</UserMetadata>"), new_key)
    assert set_so == WantedHub(availability=Availability.SEND_DISABLED, user_metadata="a < b")
    assert read_hub(hub("<Status/>"), new_key) == WantedHub()


def test_rules_are_read_and_absent_keys_are_made() -> None:
    wanted = read_hub(
        hub(
            "<AuthorizationRules><AuthorizationRule i:type='SharedAccessAuthorizationRule'><Rights>"
            "<AccessRights>Send</AccessRights><AccessRights>Listen</AccessRights></Rights><KeyName>policy</KeyName>"
            "<PrimaryKey>p</PrimaryKey></AuthorizationRule></AuthorizationRules>"
        ),
        new_key,
    )
    assert wanted.rules is not None
    (rule,) = wanted.rules
    assert (rule.name, rule.rights) == ("policy", Rights.SEND | Rights.LISTEN)
    assert (rule.primary.reveal(), rule.secondary.reveal()) == ("p", "made here")
    no_rules = read_hub(hub("<AuthorizationRules/>"), new_key)
    assert no_rules.rules == ()


@pytest.mark.parametrize(
    ("data", "condition"),
    [
        (hub("<PartitionCount>+8</PartitionCount>"), ARGUMENT_ERROR),
        (hub("<PartitionCount>\u0668</PartitionCount>"), ARGUMENT_ERROR),
        (hub("<PartitionCount>8_0</PartitionCount>"), ARGUMENT_ERROR),
        (hub("<MessageRetentionInDays>9999999</MessageRetentionInDays>"), ARGUMENT_ERROR),
        (b"<ConsumerGroupDescription/>", ARGUMENT_ERROR),
        (hub("<Status>Send</Status>"), ARGUMENT_ERROR),
        (hub("<AuthorizationRules><R><Rights><A>Own</A></Rights></R></AuthorizationRules>"), ARGUMENT_OUT_OF_RANGE),
        (hub("<AuthorizationRules><R/></AuthorizationRules>"), ARGUMENT_OUT_OF_RANGE),
    ],
)
def test_what_cannot_be_is_refused(data: bytes, condition: Condition) -> None:
    with pytest.raises(ServiceError) as refusal:
        read_hub(data, new_key)
    assert refusal.value.condition is condition


def test_a_group_has_user_metadata_or_says_nothing() -> None:
    def group(inside: str) -> bytes:
        return f"<ConsumerGroupDescription>{inside}</ConsumerGroupDescription>".encode()

    assert (read_group(b""), read_group(group("")), read_group(group("<UserMetadata/>"))) == (None, None, "")
    assert read_group(group("<CreatedAt>x</CreatedAt><UserMetadata> a &amp; b </UserMetadata>")) == "a & b"
    with pytest.raises(ServiceError):
        read_group(b"<a/>")
