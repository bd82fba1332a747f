"""The routes of the HTTP door: one table of method, path, resource and right. Nothing else is served.

How a path is matched is route.py. The right is asked at the resource, before anybody looks whether the entity exists
(rule R23); but a token that is good there and may not manage it is told when nothing has the name, as the service does.
"""

from __future__ import annotations

from hubweir.gateway.http import (
    entities,
    locked_messages,
    named_entities,
    namespaces,
    purged_hub,
    receive_messages,
    send_events,
    status_page,
    testcontrol,
)
from hubweir.gateway.http import messaging_entities as messaging
from hubweir.gateway.http.problem import HttpRefusal
from hubweir.gateway.http.route import Handler, Match, Route
from hubweir.namespace.rights import Rights


def _route(
    method: str,
    path: str,
    resource: str,
    right: Rights,
    handler: Handler,
    refusal: str = "",
    *,
    tells_absence: bool = False,
) -> Route:
    segments = tuple(resource.split("/")) if resource else ()
    return Route(method, tuple(path.split("/")), segments, right, handler, refusal, tells_absence)


def _denied(operation: str) -> str:
    """What clients match of a request on a subscription or a rule by a token without the right to manage."""
    return f"401 SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation."


_PARTITION = "{entity}/consumergroups/{group}/partitions/{partition}"
_SUBSCRIPTION = "{entity}/subscriptions/{subscription}"
_RULES = f"{_SUBSCRIPTION}/rules"
_READ = "Manage,EntityRead claims required for this operation."
_HEAD, _LOCK = "{queue}/messages/head", "{queue}/messages/{message}/{token}"
_SEND, _LISTEN, _MANAGE = Rights.SEND, Rights.LISTEN, Rights.MANAGE
# Longer paths come first: a shorter one would take a keyword for a part of an entity's name.
ROUTES = (
    _route("POST", "{entity}/partitions/{partition}/messages", "{entity}/partitions/{partition}", _SEND,
           send_events.send_to_partition),
    _route("POST", "{entity}/publishers/{publisher}/messages", "{entity}/publishers/{publisher}", _SEND,
           send_events.send_as_publisher),
    _route("POST", "{entity}/publisher/{publisher}/messages", "{entity}/publishers/{publisher}", _SEND,
           send_events.send_as_publisher),
    _route("POST", "{entity}/messages", "{entity}", _SEND, named_entities.send_to_entity),
    _route("GET", "$resources/eventhubs", "", _MANAGE, entities.list_hubs),
    _route("GET", _PARTITION, _PARTITION, _MANAGE, entities.get_partition),
    _route("GET", "{entity}/consumergroups/{group}/partitions", "{entity}/consumergroups/{group}", _MANAGE,
           entities.list_partitions),
    _route("GET", "{entity}/consumergroups/{group}", "{entity}/consumergroups/{group}", _MANAGE, entities.get_group),
    _route("PUT", "{entity}/consumergroups/{group}", "{entity}/consumergroups/{group}", _MANAGE, entities.put_group),
    _route("DELETE", "{entity}/consumergroups/{group}", "{entity}/consumergroups/{group}", _MANAGE,
           entities.delete_group),
    _route("GET", "{entity}/consumergroups", "{entity}", _MANAGE, entities.list_groups),
    _route("GET", "{entity}/revokedpublishers", "{entity}", _MANAGE, entities.list_revoked_publishers),
    _route("PUT", "{entity}/revokedpublishers/{publisher}", "{entity}", _MANAGE, entities.revoke_publisher),
    _route("DELETE", "{entity}/revokedpublishers/{publisher}", "{entity}", _MANAGE, entities.restore_publisher),
    _route("GET", "$status", "", _MANAGE, status_page.status, _READ),
    _route("GET", "$readers", "", _MANAGE, status_page.readers, _READ),
    _route("GET", "$testcontrol", "", _MANAGE, testcontrol.show, _READ),
    _route("POST", "$testcontrol/clock", "", _MANAGE, testcontrol.forward_clock, _READ),
    _route("PUT", "$testcontrol/faults", "", _MANAGE, testcontrol.order_faults, _READ),
    _route("DELETE", "$testcontrol/faults", "", _MANAGE, testcontrol.end_faults, _READ),
    _route("GET", "$namespaces", "", _MANAGE, namespaces.list_namespaces, _READ),
    _route("POST", "$namespaces/{namespace}/$restore", "", _MANAGE, namespaces.begin_restore, _READ),
    _route("GET", "$namespaces/{namespace}/$restore", "", _MANAGE, namespaces.get_restore, _READ),
    _route("GET", "$namespaces/{namespace}", "", _MANAGE, namespaces.get_namespace, _READ),
    _route("PUT", "$namespaces/{namespace}", "", _MANAGE, namespaces.put_namespace, _READ),
    _route("DELETE", "$namespaces/{namespace}", "", _MANAGE, namespaces.delete_namespace, _READ),
    _route("GET", "$namespaceinfo", "", _MANAGE, messaging.namespace_info, _READ),
    _route("GET", "$resources/queues", "", _MANAGE, messaging.list_queues, _READ),
    _route("GET", "$resources/topics", "", _MANAGE, messaging.list_topics, _READ),
    _route("GET", f"{_RULES}/{{rule}}", f"{_RULES}/{{rule}}", _MANAGE, messaging.get_rule, _denied("GetRule")),
    _route("PUT", f"{_RULES}/{{rule}}", f"{_RULES}/{{rule}}", _MANAGE, messaging.put_rule,
           _denied("CreateOrUpdateRule")),
    _route("PATCH", f"{_RULES}/{{rule}}", f"{_RULES}/{{rule}}", _MANAGE, messaging.patch_rule,
           _denied("CreateOrUpdateRule")),
    _route("DELETE", f"{_RULES}/{{rule}}", f"{_RULES}/{{rule}}", _MANAGE, messaging.delete_rule,
           _denied("DeleteRule")),
    _route("GET", _RULES, _SUBSCRIPTION, _MANAGE, messaging.list_rules, _denied("EnumerateRules")),
    _route("GET", _SUBSCRIPTION, _SUBSCRIPTION, _MANAGE, messaging.get_subscription, _denied("GetSubscription")),
    _route("PUT", _SUBSCRIPTION, _SUBSCRIPTION, _MANAGE, messaging.put_subscription,
           _denied("CreateOrUpdateSubscription")),
    _route("PATCH", _SUBSCRIPTION, _SUBSCRIPTION, _MANAGE, messaging.patch_subscription,
           _denied("CreateOrUpdateSubscription")),
    _route("DELETE", _SUBSCRIPTION, _SUBSCRIPTION, _MANAGE, messaging.delete_subscription,
           _denied("DeleteSubscription")),
    _route("GET", f"{_SUBSCRIPTION}/$fragments", _SUBSCRIPTION, _MANAGE, messaging.list_subscription_fragments,
           _denied("GetSubscription")),
    _route("POST", "{entity}/$purge", "{entity}", _MANAGE, purged_hub.purge, _READ),
    _route("GET", "{entity}/$fragments", "{entity}", _MANAGE, messaging.list_fragments, _READ),
    _route("GET", "{entity}/subscriptions", "{entity}", _MANAGE, messaging.list_subscriptions,
           _denied("EnumerateSubscriptions")),
    _route("POST", _HEAD, "{queue}", _LISTEN, receive_messages.peek_lock),
    _route("DELETE", _HEAD, "{queue}", _LISTEN, receive_messages.receive_and_delete),
    _route("PUT", _LOCK, "{queue}", _LISTEN, locked_messages.unlock),
    _route("POST", _LOCK, "{queue}", _LISTEN, locked_messages.renew),
    _route("DELETE", _LOCK, "{queue}", _LISTEN, locked_messages.complete),
    _route("GET", status_page.NAME, "", _MANAGE, status_page.status_or_entity, _READ),
    _route("GET", "{entity}", "{entity}", _MANAGE, named_entities.get_entity, _READ, tells_absence=True),
    _route("PUT", "{entity}", "{entity}", _MANAGE, named_entities.put_entity,
           "Authorization failed for specified action: Manage,EntityWrite."),
    _route("PATCH", "{entity}", "{entity}", _MANAGE, named_entities.patch_entity,
           "Authorization failed for specified action: Manage,EntityWrite."),
    _route("DELETE", "{entity}", "{entity}", _MANAGE, named_entities.delete_entity,
           "Authorization failed for specified action: Manage,EntityDelete."),
)  # fmt: skip


def find_route(method: str, segments: tuple[str, ...]) -> tuple[Route, Match]:
    """The route of a request; HttpRefusal 405 when its path takes other methods only, 404 when it is no path here."""
    allowed: list[str] = []
    for route in ROUTES if segments else ():
        if route.method == method or route.method not in allowed:
            match = route.match(segments)
            if match is not None:
                if route.method == method:
                    return route, match
                allowed.append(route.method)
    if allowed:
        text = f"This address takes {', '.join(sorted(allowed))}."
        raise HttpRefusal(405, text, {"allow": ", ".join(sorted(allowed))})
    raise HttpRefusal(
        404, "There is nothing at this address. Events are sent to /EVENTHUB/messages, messages to /QUEUE/messages."
    )
