"""The pages of the portal: one table of method, page and the right that it needs. Nothing else is served.

Of an entity's page the right is asked at the entity, before anybody looks whether it exists; of others at the
namespace. Of several rights any one is enough.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hubweir.gateway.http.exchange import Response
from hubweir.namespace.rights import Rights
from hubweir.portal import (
    access_pages,
    alarm_pages,
    capture_pages,
    chart_pages,
    connect_pages,
    connection_pages,
    consumer_group_pages,
    creation,
    deletion,
    downloads,
    entity_lists,
    entity_pages,
    event_explorer,
    message_explorer,
    namespace_list,
    namespace_overview,
    reader_pages,
    scale_pages,
    sending,
    settings_pages,
    subscription_rule_pages,
)
from hubweir.portal.form import FORM_BYTES
from hubweir.portal.visit import Visit

Handler = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One line of the table. is_of_entity: the rest of the path is an entity's name; else there is no rest.

    is_open: whoever is signed in may, and the page shows what their rights allow. form_bytes: the largest form.
    """

    method: str
    page: str
    right: Rights
    handler: Handler
    is_of_entity: bool = False
    is_open: bool = False
    form_bytes: int = FORM_BYTES


_MANAGE, _SEND, _LISTEN, _ANY = Rights.MANAGE, Rights.SEND, Rights.LISTEN, Rights.ALL
# A body of a quarter of a megabyte, of which each byte may take three in a form.
SEND_BYTES = 1024 * 1024
# Values of a correlation filter may have 32,768 characters each.
RULE_BYTES = 512 * 1024
ROUTES = (
    PageRoute("GET", "", _ANY, namespace_overview.overview, is_open=True),
    PageRoute("GET", "open", _ANY, namespace_overview.open_entity, is_open=True),
    PageRoute("GET", "event-hubs", _MANAGE, entity_lists.event_hubs),
    PageRoute("GET", "queues", _MANAGE, entity_lists.queues),
    PageRoute("GET", "topics", _MANAGE, entity_lists.topics),
    PageRoute("GET", "entity", _ANY, entity_pages.entity, is_of_entity=True),
    PageRoute("GET", "fragments", _MANAGE, entity_pages.fragments, is_of_entity=True),
    PageRoute("GET", "create-event-hub", _MANAGE, creation.new_event_hub),
    PageRoute("POST", "create-event-hub", _MANAGE, creation.create_event_hub),
    PageRoute("GET", "create-queue", _MANAGE, creation.new_queue),
    PageRoute("POST", "create-queue", _MANAGE, creation.create_queue),
    PageRoute("GET", "create-topic", _MANAGE, creation.new_topic),
    PageRoute("POST", "create-topic", _MANAGE, creation.create_topic),
    PageRoute("GET", "create-subscription", _MANAGE, creation.new_subscription, is_of_entity=True),
    PageRoute("POST", "create-subscription", _MANAGE, creation.create_subscription, is_of_entity=True),
    PageRoute("GET", "settings", _MANAGE, settings_pages.settings, is_of_entity=True),
    PageRoute("POST", "settings", _MANAGE, settings_pages.change_settings, is_of_entity=True),
    PageRoute("GET", "delete", _MANAGE, deletion.ask_delete, is_of_entity=True),
    PageRoute("POST", "delete", _MANAGE, deletion.delete, is_of_entity=True),
    PageRoute("GET", "events", _LISTEN, event_explorer.events, is_of_entity=True),
    PageRoute("GET", "follow", _LISTEN, event_explorer.follow, is_of_entity=True),
    PageRoute("GET", "event-body", _LISTEN, downloads.event_body, is_of_entity=True),
    PageRoute("GET", "download-events", _LISTEN, downloads.events_file, is_of_entity=True),
    PageRoute("GET", "message-body", _LISTEN, downloads.message_body, is_of_entity=True),
    PageRoute("GET", "download-messages", _LISTEN, downloads.messages_file, is_of_entity=True),
    PageRoute("GET", "messages", _LISTEN, message_explorer.messages, is_of_entity=True),
    PageRoute("POST", "dead-letter", _LISTEN, message_explorer.dead_letter, is_of_entity=True),
    PageRoute("POST", "resubmit", _LISTEN, message_explorer.resubmit, is_of_entity=True),
    PageRoute("POST", "purge", _LISTEN, message_explorer.purge, is_of_entity=True),
    PageRoute("GET", "send", _SEND, sending.new_message, is_of_entity=True),
    PageRoute("POST", "send", _SEND, sending.send, is_of_entity=True, form_bytes=SEND_BYTES),
    PageRoute("GET", "scale", _MANAGE, scale_pages.scale),
    PageRoute("POST", "scale", _MANAGE, scale_pages.change_scale),
    PageRoute("GET", "usage-now", _MANAGE, scale_pages.usage_now),
    PageRoute("GET", "charts", _MANAGE, chart_pages.charts),
    PageRoute("GET", "entity-charts", _MANAGE, chart_pages.charts, is_of_entity=True),
    PageRoute("GET", "connections", _MANAGE, connection_pages.connections),
    PageRoute("GET", "alarms", _MANAGE, alarm_pages.alarms),
    PageRoute("GET", "namespaces", _MANAGE, namespace_list.namespaces),
    PageRoute("GET", "capture", _MANAGE, capture_pages.capture, is_of_entity=True),
    PageRoute("POST", "capture", _MANAGE, capture_pages.change_capture, is_of_entity=True),
    PageRoute("GET", "connect", _ANY, connect_pages.connect, is_of_entity=True),
    PageRoute("GET", "policies", _MANAGE, access_pages.policies),
    PageRoute("POST", "policies", _MANAGE, access_pages.create_policy),
    PageRoute("GET", "policy", _MANAGE, access_pages.policy),
    PageRoute("POST", "policy", _MANAGE, access_pages.show_keys),
    PageRoute("POST", "renew-key", _MANAGE, access_pages.renew_key),
    PageRoute("POST", "rights", _MANAGE, access_pages.change_rights),
    PageRoute("POST", "delete-policy", _MANAGE, access_pages.delete_policy),
    PageRoute("GET", "entity-policies", _MANAGE, access_pages.policies, is_of_entity=True),
    PageRoute("POST", "entity-policies", _MANAGE, access_pages.create_policy, is_of_entity=True),
    PageRoute("GET", "entity-policy", _MANAGE, access_pages.policy, is_of_entity=True),
    PageRoute("POST", "entity-policy", _MANAGE, access_pages.show_keys, is_of_entity=True),
    PageRoute("POST", "entity-renew-key", _MANAGE, access_pages.renew_key, is_of_entity=True),
    PageRoute("POST", "entity-rights", _MANAGE, access_pages.change_rights, is_of_entity=True),
    PageRoute("POST", "entity-delete-policy", _MANAGE, access_pages.delete_policy, is_of_entity=True),
    PageRoute("GET", "readers", _MANAGE, reader_pages.readers, is_of_entity=True),
    PageRoute("GET", "rules", _MANAGE, subscription_rule_pages.rules, is_of_entity=True),
    PageRoute("GET", "rule", _MANAGE, subscription_rule_pages.rule, is_of_entity=True),
    PageRoute("POST", "rule", _MANAGE, subscription_rule_pages.put_rule, is_of_entity=True, form_bytes=RULE_BYTES),
    PageRoute("POST", "delete-rule", _MANAGE, subscription_rule_pages.delete_rule, is_of_entity=True),
    PageRoute("GET", "consumer-groups", _MANAGE, consumer_group_pages.groups, is_of_entity=True),
    PageRoute("POST", "consumer-groups", _MANAGE, consumer_group_pages.add_group, is_of_entity=True),
    PageRoute("POST", "delete-consumer-group", _MANAGE, consumer_group_pages.delete_group, is_of_entity=True),
)


def find_page(method: str, page: str) -> tuple[PageRoute | None, list[str]]:
    """The route of a page for a method, and the methods that the page takes: none, there is no such page."""
    of_page = [route for route in ROUTES if route.page == page]
    wanted = "GET" if method == "HEAD" else method
    return next((route for route in of_page if route.method == wanted), None), [route.method for route in of_page]
