"""The operations of Azure Resource Manager that are served: one table of method, provider, path and whose right it is.

Whatever else a client asks for below a provider is refused as OperationNotSupported, with its name.
"""

from __future__ import annotations

from hubweir.errors import NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.arm import authorization_rules as rules
from hubweir.gateway.arm import event_hubs, messaging, namespaces, subscription_rules
from hubweir.gateway.arm.operation import ArmOperation, Handler, RightOf
from hubweir.gateway.arm.resource_path import EVENT_HUB, SERVICE_BUS, ArmPath
from hubweir.namespace.resource_path import fold

_NAMESPACE = "namespaces/{namespace}"
_HUB, _GROUP = f"{_NAMESPACE}/eventhubs/{{hub}}", f"{_NAMESPACE}/eventhubs/{{hub}}/consumergroups/{{group}}"
_QUEUE, _TOPIC = f"{_NAMESPACE}/queues/{{queue}}", f"{_NAMESPACE}/topics/{{topic}}"
_SUBSCRIPTION = f"{_TOPIC}/subscriptions/{{subscription}}"
_OF_SERVICE, _OF_NAMESPACE = RightOf.SERVICE, RightOf.NAMESPACE


def _operation(method: str, provider: str, path: str, handler: Handler, of: RightOf = _OF_NAMESPACE) -> ArmOperation:
    return ArmOperation(method, provider, tuple(path.split("/")), of, handler)


def _rules_of(provider: str, path: str) -> tuple[ArmOperation, ...]:
    """Authorization rules of what has this path."""
    one = f"{path}/authorizationrules/{{rule}}"
    return (
        _operation("GET", provider, f"{path}/authorizationrules", rules.list_rules),
        _operation("GET", provider, one, rules.get_rule),
        _operation("PUT", provider, one, rules.put_rule),
        _operation("DELETE", provider, one, rules.delete_rule),
        _operation("POST", provider, f"{one}/listkeys", rules.list_keys),
        _operation("POST", provider, f"{one}/regeneratekeys", rules.regenerate_keys),
    )


OPERATIONS = (
    _operation("GET", "", "namespaces", namespaces.list_namespaces, _OF_SERVICE),
    _operation("POST", "", "checknameavailability", namespaces.check_name, _OF_SERVICE),
    _operation("GET", "", _NAMESPACE, namespaces.get_namespace),
    _operation("PUT", "", _NAMESPACE, namespaces.put_namespace, _OF_SERVICE),
    _operation("PATCH", "", _NAMESPACE, namespaces.patch_namespace),
    _operation("DELETE", "", _NAMESPACE, namespaces.delete_namespace, _OF_SERVICE),
    *_rules_of("", _NAMESPACE),
    _operation("GET", EVENT_HUB, f"{_NAMESPACE}/eventhubs", event_hubs.list_hubs),
    _operation("GET", EVENT_HUB, _HUB, event_hubs.get_hub),
    _operation("PUT", EVENT_HUB, _HUB, event_hubs.put_hub),
    _operation("DELETE", EVENT_HUB, _HUB, event_hubs.delete_hub),
    *_rules_of(EVENT_HUB, _HUB),
    _operation("GET", EVENT_HUB, f"{_HUB}/consumergroups", event_hubs.list_groups),
    _operation("GET", EVENT_HUB, _GROUP, event_hubs.get_group),
    _operation("PUT", EVENT_HUB, _GROUP, event_hubs.put_group),
    _operation("DELETE", EVENT_HUB, _GROUP, event_hubs.delete_group),
    _operation("GET", SERVICE_BUS, f"{_NAMESPACE}/queues", messaging.list_queues),
    _operation("GET", SERVICE_BUS, _QUEUE, messaging.get_queue),
    _operation("PUT", SERVICE_BUS, _QUEUE, messaging.put_queue),
    _operation("DELETE", SERVICE_BUS, _QUEUE, messaging.delete_queue),
    *_rules_of(SERVICE_BUS, _QUEUE),
    _operation("GET", SERVICE_BUS, f"{_NAMESPACE}/topics", messaging.list_topics),
    _operation("GET", SERVICE_BUS, _TOPIC, messaging.get_topic),
    _operation("PUT", SERVICE_BUS, _TOPIC, messaging.put_topic),
    _operation("DELETE", SERVICE_BUS, _TOPIC, messaging.delete_topic),
    *_rules_of(SERVICE_BUS, _TOPIC),
    _operation("GET", SERVICE_BUS, f"{_TOPIC}/subscriptions", messaging.list_subscriptions),
    _operation("GET", SERVICE_BUS, _SUBSCRIPTION, messaging.get_subscription),
    _operation("PUT", SERVICE_BUS, _SUBSCRIPTION, messaging.put_subscription),
    _operation("DELETE", SERVICE_BUS, _SUBSCRIPTION, messaging.delete_subscription),
    _operation("GET", SERVICE_BUS, f"{_SUBSCRIPTION}/rules", subscription_rules.list_rules),
    _operation("GET", SERVICE_BUS, f"{_SUBSCRIPTION}/rules/{{rule}}", subscription_rules.get_rule),
    _operation("PUT", SERVICE_BUS, f"{_SUBSCRIPTION}/rules/{{rule}}", subscription_rules.put_rule),
    _operation("DELETE", SERVICE_BUS, f"{_SUBSCRIPTION}/rules/{{rule}}", subscription_rules.delete_rule),
)


def find_operation(method: str, path: ArmPath) -> tuple[ArmOperation, dict[str, str]]:
    """The operation, and what stands in the braces of its path; NOT_IMPLEMENTED when there is none."""
    for operation in OPERATIONS:
        if operation.method == method and operation.provider in ("", path.provider):
            names = _match(operation.path, path.rest)
            if names is not None:
                return operation, names
    words = "/".join(word for place, word in enumerate(path.rest) if place % 2 == 0)[:128]
    raise ServiceError(
        NOT_IMPLEMENTED, f"{method} of {path.provider}/{words} is not served here: docs/arm.md says what is."
    )


def _match(form: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(form) != len(segments):
        return None
    names: dict[str, str] = {}
    for part, segment in zip(form, segments, strict=True):
        if part.startswith("{"):
            names[part[1:-1]] = segment
        elif fold(segment) != part:
            return None
    return names
