"""Event hubs, consumer groups and partitions over HTTP: reads of gateway/management_view.py, changes by the keeper.

| call                                | answer            |
|-------------------------------------|-------------------|
| PUT hub, group                      | 201; 409 when it is there |
| PUT hub, group with `If-Match: *`   | 200: changed; 404 when it is not there |
| GET, DELETE                         | 200; 404 |
| GET of a list                       | 200, a feed; `$skip` and `$top` cut it |

An update of a hub says what is to be different: what the request leaves out stays. ("REST API reference", Event Hubs)
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hubweir.auth.authorization_rule import KEY_BYTES, new_key
from hubweir.broker.commands.partition import PartitionInfo
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.event_hub.publisher_policy import is_revoked
from hubweir.gateway.http.atom import (
    AtomEntry,
    entry_response,
    group_content,
    hub_content,
    partition_content,
    retention_days,
    revoked_publisher_content,
)
from hubweir.gateway.http.description_xml import WantedHub, read_group, read_hub
from hubweir.gateway.http.entity_requests import feed, is_change, page_of, read_body, uri_of
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.route import Match
from hubweir.namespace.changes import EntityChange
from hubweir.namespace.error_text import entity_not_found, entity_uri, printable
from hubweir.namespace.event_hub_changes import add_group, change_group, remove_group, set_settings
from hubweir.namespace.event_hub_changes import restore_publisher as restore
from hubweir.namespace.event_hub_changes import revoke_publisher as revoke
from hubweir.namespace.event_hub_description import EventHubDescription
from hubweir.namespace.tiers import DAY_MS

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

# The default of the REST reference; the other doors have a smaller one.
PARTITION_COUNT_DEFAULT = 16


async def list_hubs(gateway: Gateway, request: Request, match: Match) -> Response:
    page = page_of(request, gateway.management.hubs())
    entries = [_hub_entry(request, hub) for hub in page.items]
    return feed(gateway, request, "EventHubs", entries, page.next_uri)


async def get_hub(gateway: Gateway, request: Request, match: Match) -> Response:
    return _hub(gateway, request, gateway.management.hub(match.entity), 200)


async def put_hub(gateway: Gateway, request: Request, name: str, data: bytes) -> Response:
    """data: the request's body, which may be empty."""
    change = is_change(request)
    wanted = read_hub(data, lambda: new_key(gateway.env.random_bytes(KEY_BYTES)))
    if change:
        return _hub(gateway, request, await _change_settings(gateway, name, wanted), 200)
    count = PARTITION_COUNT_DEFAULT if wanted.partition_count is None else wanted.partition_count
    description = EventHubDescription(name, count, rules=wanted.rules or ())
    if wanted.retention_days is not None:
        description = replace(description, retention_ms=wanted.retention_days * DAY_MS)
    description = _with(description, wanted)
    made = await answer_of(partial(gateway.keeper.create, description))
    return _hub(gateway, request, made, 201)


async def list_groups(gateway: Gateway, request: Request, match: Match) -> Response:
    hub = gateway.management.hub(match.entity)
    page = page_of(request, hub.consumer_groups)
    entries = [_group_entry(request, hub, group) for group in page.items]
    return feed(gateway, request, "ConsumerGroups", entries, page.next_uri)


async def get_group(gateway: Gateway, request: Request, match: Match) -> Response:
    return _group(gateway, request, match, 200)


async def put_group(gateway: Gateway, request: Request, match: Match) -> Response:
    change = is_change(request)
    text = read_group(await read_body(gateway, request))
    hub, group = gateway.management.hub(match.entity).name, match.names["group"]
    if change:
        await _change(gateway, hub, partial(change_group, name=group, user_metadata=text))
        return _group(gateway, request, match, 200)
    await _change(gateway, hub, partial(add_group, name=group, user_metadata=text or ""))
    return _group(gateway, request, match, 201)


async def delete_group(gateway: Gateway, request: Request, match: Match) -> Response:
    hub = gateway.management.hub(match.entity).name
    group = gateway.management.group(hub, match.names["group"])
    await _change(gateway, hub, partial(remove_group, name=group))
    return Response(200)


async def list_revoked_publishers(gateway: Gateway, request: Request, match: Match) -> Response:
    hub = gateway.management.hub(match.entity)
    page = page_of(request, hub.revoked_publishers)
    entries = [_revoked_entry(request, hub, one) for one in page.items]
    return feed(gateway, request, "RevokedPublishers", entries, page.next_uri)


async def revoke_publisher(gateway: Gateway, request: Request, match: Match) -> Response:
    """Its links end and its tokens mean nothing until it is restored. Revoking twice is no mistake."""
    hub, publisher = gateway.management.hub(match.entity).name, match.names["publisher"]
    entry = _revoked_entry(request, await _change(gateway, hub, partial(revoke, publisher=publisher)), publisher)
    return entry_response(entry, author=gateway.settings.namespace, status=201)


async def restore_publisher(gateway: Gateway, request: Request, match: Match) -> Response:
    hub, publisher = gateway.management.hub(match.entity), match.names["publisher"]
    if not is_revoked(hub, publisher):
        raise ServiceError(NOT_FOUND, f"The publisher '{printable(publisher)}' of '{hub.name}' is not revoked.")
    await _change(gateway, hub.name, partial(restore, publisher=publisher))
    return Response(200)


async def list_partitions(gateway: Gateway, request: Request, match: Match) -> Response:
    hub = gateway.management.hub(match.entity)
    group = gateway.management.group(hub.name, match.names["group"])
    page = page_of(request, hub.partition_ids)
    entries = [await _partition_entry(gateway, request, hub, group, partition_id) for partition_id in page.items]
    return feed(gateway, request, "Partitions", entries, page.next_uri)


async def get_partition(gateway: Gateway, request: Request, match: Match) -> Response:
    hub = gateway.management.hub(match.entity)
    group = gateway.management.group(hub.name, match.names["group"])
    partition_id = match.names["partition"]
    if not hub.has_partition(partition_id):
        path = f"{hub.name}/consumergroups/{group}/partitions/{partition_id}"
        raise ServiceError(NOT_FOUND, entity_not_found(entity_uri(gateway.settings.host_name, path)))
    entry = await _partition_entry(gateway, request, hub, group, partition_id)
    return entry_response(entry, author=gateway.settings.namespace)


# Parts


async def _change(gateway: Gateway, hub: str, change: EntityChange[EventHubDescription]) -> EventHubDescription:
    """Change an event hub, and wait until it is done."""
    return await answer_of(partial(gateway.keeper.change, hub, EventHubDescription, change))


async def _change_settings(gateway: Gateway, name: str, wanted: WantedHub) -> EventHubDescription:
    hub = gateway.management.hub(name)
    asked = hub if wanted.partition_count is None else replace(hub, partition_count=wanted.partition_count)
    # Retention is told in whole days: a request that repeats what it was told changes nothing.
    if wanted.retention_days is not None and wanted.retention_days != retention_days(hub):
        asked = replace(asked, retention_ms=wanted.retention_days * DAY_MS)
    asked = _with(asked, wanted)
    return await _change(gateway, name, partial(set_settings, wanted=asked, seen=hub, rules=wanted.rules))


def _with(hub: EventHubDescription, wanted: WantedHub) -> EventHubDescription:
    """The hub with the status and the metadata that a request names."""
    if wanted.availability is not None:
        hub = replace(hub, availability=wanted.availability)
    if wanted.user_metadata is not None:
        hub = replace(hub, user_metadata=wanted.user_metadata)
    return hub


def _hub(gateway: Gateway, request: Request, hub: EventHubDescription, status: int) -> Response:
    return entry_response(_hub_entry(request, hub), author=gateway.settings.namespace, status=status)


def _group(gateway: Gateway, request: Request, match: Match, status: int) -> Response:
    hub = gateway.management.hub(match.entity)
    group = gateway.management.group(hub.name, match.names["group"])
    return entry_response(_group_entry(request, hub, group), author=gateway.settings.namespace, status=status)


def _hub_entry(request: Request, hub: EventHubDescription) -> AtomEntry:
    return AtomEntry(uri_of(request, hub.name), hub.name, hub.created_at_ms, hub_content(hub), hub.updated_at_ms)


def _group_entry(request: Request, hub: EventHubDescription, group: str) -> AtomEntry:
    uri, details = uri_of(request, hub.name, "consumergroups", group), hub.details_of(group)
    return AtomEntry(uri, group, details.created_at_ms, group_content(details), details.updated_at_ms)


def _revoked_entry(request: Request, hub: EventHubDescription, publisher: str) -> AtomEntry:
    uri = uri_of(request, hub.name, "revokedpublishers", publisher)
    return AtomEntry(uri, publisher, hub.created_at_ms, revoked_publisher_content(publisher))


async def _partition_entry(
    gateway: Gateway, request: Request, hub: EventHubDescription, group: str, partition_id: str
) -> AtomEntry:
    info: PartitionInfo = await answer_of(
        lambda on_done: gateway.management.partition_info(hub.name, partition_id, on_done)
    )
    uri = uri_of(request, hub.name, "consumergroups", group, "partitions", partition_id)
    return AtomEntry(uri, partition_id, hub.created_at_ms, partition_content(info))
