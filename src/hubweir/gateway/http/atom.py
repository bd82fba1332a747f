"""Descriptions as Atom entries and feeds (RFC 4287), in the service's namespaces and order of elements.

An entry's content is the description of one entity. Everything that came from outside is escaped here. Keys of rules
are part of a hub's description: only who may manage the hub gets one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from hubweir.broker.commands.partition import PartitionInfo
from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.strict_xml import xml_text
from hubweir.namespace.error_text import timestamp
from hubweir.namespace.event_hub_description import EventHubDescription, GroupDetails
from hubweir.namespace.rights import Rights, right_name
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.tiers import DAY_MS

ATOM = "http://www.w3.org/2005/Atom"
SERVICE_BUS = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
ARRAYS = "http://schemas.microsoft.com/2003/10/Serialization/Arrays"
ENTRY_TYPE = "application/atom+xml;type=entry;charset=utf-8"
FEED_TYPE = "application/atom+xml;type=feed;charset=utf-8"
# 0001-01-01: a partition that never held an event.
YEAR_ONE_MS = -62_135_596_800_000
_RIGHTS = (Rights.LISTEN, Rights.MANAGE, Rights.SEND)


@dataclass(frozen=True, slots=True)
class AtomEntry:
    """One entity. uri: its address. content: the XML of its description. updated_at_ms None: when it was made."""

    uri: str
    title: str
    created_at_ms: int
    content: str
    updated_at_ms: int | None = None


def entry_response(entry: AtomEntry, *, author: str, status: int = 200) -> Response:
    """The answer that holds one entity. author: the namespace's name."""
    return Response(status, f"{_xml(entry, author, root=True)}".encode(), ENTRY_TYPE)


def feed_response(
    uri: str, title: str, entries: Iterable[AtomEntry], *, author: str, now_ms: int, next_uri: str | None = None
) -> Response:
    """The answer that holds a page of a list of entities. next_uri: of the next page; None: there is none."""
    more = "" if next_uri is None else f'<link rel="next" href={quoteattr(next_uri)}/>'
    items = "".join(_xml(entry, author, root=False) for entry in entries)
    text = (
        f'<feed xmlns="{ATOM}"><title type="text">{xml_text(title)}</title><id>{xml_text(uri)}</id>'
        f'<updated>{timestamp(now_ms)}Z</updated><link rel="self" href={quoteattr(uri)}/>{more}{items}</feed>'
    )
    return Response(200, text.encode(), FEED_TYPE)


def hub_content(hub: EventHubDescription) -> str:
    """EventHubDescription. Retention is told in whole days, rounded up."""
    rules = "".join(rule_content(rule) for rule in hub.rules)
    ids = "".join(f"<a:string>{partition_id}</a:string>" for partition_id in hub.partition_ids)
    created = f"{timestamp(hub.created_at_ms)}Z"
    metadata = (("UserMetadata", xml_text(hub.user_metadata)),) if hub.user_metadata else ()
    return description(
        "EventHubDescription",
        (
            ("MessageRetentionInDays", str(retention_days(hub))),
            ("AuthorizationRules", rules),
            ("Status", hub.availability.text),
            ("CreatedAt", created),
            ("UpdatedAt", f"{timestamp(hub.updated_at_ms)}Z"),
            *metadata,
            ("PartitionCount", str(hub.partition_count)),
        ),
        f'<PartitionIds xmlns:a="{ARRAYS}">{ids}</PartitionIds>',
    )


def retention_days(hub: EventHubDescription) -> int:
    """A hub's retention as REST tells it."""
    return -(-hub.retention_ms // DAY_MS)


def group_content(group: GroupDetails) -> str:
    """ConsumerGroupDescription."""
    created, updated = (f"{timestamp(time_ms)}Z" for time_ms in (group.created_at_ms, group.updated_at_ms))
    metadata = (("UserMetadata", xml_text(group.user_metadata)),) if group.user_metadata else ()
    return description("ConsumerGroupDescription", (("CreatedAt", created), ("UpdatedAt", updated), *metadata))


def revoked_publisher_content(publisher: str) -> str:
    """RevokedPublisherDescription: the name is all there is to say."""
    return description("RevokedPublisherDescription", (("Name", publisher),))


def partition_content(info: PartitionInfo) -> str:
    """PartitionDescription; rates of bytes are not measured a partition, and left out."""
    time_ms = YEAR_ONE_MS if info.last_enqueued_time_ms is None else info.last_enqueued_time_ms
    return description(
        "PartitionDescription",
        (
            ("SizeInBytes", str(info.size_bytes)),
            ("BeginSequenceNumber", str(info.begin_sequence_number)),
            ("EndSequenceNumber", str(info.last_sequence_number)),
            ("LastEnqueuedOffset", str(info.last_offset)),
            ("LastEnqueuedTimeUtc", f"{timestamp(time_ms)}Z"),
        ),
    )


def description(name: str, members: Iterable[tuple[str, str]], more: str = "") -> str:
    """The XML of a description. members: element and XML inside it, in order. more: XML behind them."""
    inside = "".join(f"<{member}>{xml}</{member}>" for member, xml in members)
    return f'<{name} xmlns="{SERVICE_BUS}" xmlns:i="{INSTANCE}">{inside}{more}</{name}>'


def rule_content(rule: AuthorizationRuleDescription) -> str:
    """One AuthorizationRule, with its keys in clear."""
    rights = "".join(f"<AccessRights>{right_name(right)}</AccessRights>" for right in _RIGHTS if right in rule.rights)
    return (
        '<AuthorizationRule i:type="SharedAccessAuthorizationRule"><ClaimType>SharedAccessKey</ClaimType>'
        f"<ClaimValue>None</ClaimValue><Rights>{rights}</Rights><KeyName>{xml_text(rule.name)}</KeyName>"
        f"<PrimaryKey>{xml_text(rule.primary.reveal())}</PrimaryKey>"
        f"<SecondaryKey>{xml_text(rule.secondary.reveal())}</SecondaryKey></AuthorizationRule>"
    )


def _xml(entry: AtomEntry, author: str, *, root: bool) -> str:
    created = f"{timestamp(entry.created_at_ms)}Z"
    updated = created if entry.updated_at_ms is None else f"{timestamp(entry.updated_at_ms)}Z"
    namespace = f' xmlns="{ATOM}"' if root else ""
    return (
        f'<entry{namespace}><id>{xml_text(entry.uri)}</id><title type="text">{xml_text(entry.title)}</title>'
        f"<published>{created}</published><updated>{updated}</updated><author><name>{xml_text(author)}</name></author>"
        f'<link rel="self" href={quoteattr(entry.uri)}/><content type="application/xml">{entry.content}</content>'
        "</entry>"
    )
