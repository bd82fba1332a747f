"""Descriptions as Atom: namespaces, order of elements, and text that stays text."""

from xml.etree import ElementTree

from hubweir.broker.commands.partition import PartitionInfo
from hubweir.gateway.http.atom import (
    ARRAYS,
    ATOM,
    SERVICE_BUS,
    AtomEntry,
    entry_response,
    feed_response,
    group_content,
    hub_content,
    partition_content,
    retention_days,
)
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.tiers import DAY_MS, HOUR_MS

RULE = AuthorizationRuleDescription("a <rule> & more", Rights.ALL, Secret("p&<"), Secret(""))
HUB = EventHubDescription("hub", 2, created_at_ms=1_700_000_000_000, rules=(RULE,))


def members(content: str) -> list[str]:
    return [child.tag.removeprefix(f"{{{SERVICE_BUS}}}") for child in ElementTree.fromstring(content)]


def test_a_hub_has_its_elements_in_the_service_s_order() -> None:
    content = hub_content(HUB)
    root = ElementTree.fromstring(content)
    assert root.tag == f"{{{SERVICE_BUS}}}EventHubDescription"
    assert members(content) == [
        "MessageRetentionInDays", "AuthorizationRules", "Status", "CreatedAt", "UpdatedAt", "PartitionCount",
        "PartitionIds",
    ]  # fmt: skip
    texts = {name: child.text for name, child in zip(members(content), root, strict=True)}
    assert texts["CreatedAt"] == "2023-11-14T22:13:20Z"
    assert (texts["MessageRetentionInDays"], texts["PartitionCount"]) == ("1", "2")
    assert [child.text for child in root.iter(f"{{{ARRAYS}}}string")] == ["0", "1"]


def test_a_rule_has_its_rights_and_keys_and_nothing_breaks_out_of_its_text() -> None:
    root = ElementTree.fromstring(hub_content(HUB))
    found = {child.tag.partition("}")[2]: child for child in root.iter()}
    assert found["KeyName"].text == "a <rule> & more"
    assert found["PrimaryKey"].text == "p&<"
    assert found["SecondaryKey"].text is None
    assert [child.text for child in found["Rights"]] == ["Listen", "Manage", "Send"]
    assert (found["ClaimType"].text, found["ClaimValue"].text) == ("SharedAccessKey", "None")


def test_retention_is_told_in_whole_days_rounded_up() -> None:
    for retention_ms, days in ((HOUR_MS, 1), (DAY_MS, 1), (DAY_MS + 1, 2), (90 * DAY_MS, 90)):
        assert retention_days(EventHubDescription("hub", 1, retention_ms)) == days


def test_partitions_and_groups() -> None:
    assert members(group_content(HUB.details_of("$Default"))) == ["CreatedAt", "UpdatedAt"]
    noted = group_content(GroupDetails("g", 5, 6, "a < b"))
    assert members(noted) == ["CreatedAt", "UpdatedAt", "UserMetadata"] and "a &lt; b" in noted
    empty = partition_content(PartitionInfo("log", -1, -1, -1, None, True, 0))
    assert members(empty) == [
        "SizeInBytes", "BeginSequenceNumber", "EndSequenceNumber", "LastEnqueuedOffset", "LastEnqueuedTimeUtc",
    ]  # fmt: skip
    assert [child.text for child in ElementTree.fromstring(empty)] == ["0", "-1", "-1", "-1", "0001-01-01T00:00:00Z"]


def test_an_entry_and_a_feed_escape_what_came_from_outside() -> None:
    entry = AtomEntry('http://h/"a"&<b>', "<title>", 0, "<X/>")
    response = entry_response(entry, author="ns & co", status=201)
    assert (response.status, response.content_type) == (201, "application/atom+xml;type=entry;charset=utf-8")
    feed = feed_response("http://h/<list>", "<List>", [entry, entry], author="ns", now_ms=0)
    root = ElementTree.fromstring(feed.body)
    assert len(root.findall(f"{{{ATOM}}}entry")) == 2
    for found in (ElementTree.fromstring(response.body), root[4]):
        assert found.findtext(f"{{{ATOM}}}id") == entry.uri
        assert found.findtext(f"{{{ATOM}}}title") == "<title>"
        link = found.find(f"{{{ATOM}}}link")
        assert link is not None and link.get("href") == entry.uri
        content = found.find(f"{{{ATOM}}}content")
        assert content is not None and content.get("type") == "application/xml" and len(content) == 1
