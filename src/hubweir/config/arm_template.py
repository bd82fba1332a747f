"""A template of Azure Resource Manager as a Config.json: namespaces with their entities, rules and settings.

Bicep compiles to such a template. Read are resources of Microsoft.EventHub and Microsoft.ServiceBus, nested in one
another or named by their paths, in a list or by symbolic names, in loops, under conditions, and in nested deployments;
parameters, variables and expressions (arm_expressions.py, arm_functions.py). A Config.json has what they say under the
same words with large first letters. What else a template makes is left out, and told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hubweir.config.arm_expressions import TemplateScope
from hubweir.config.arm_functions import BadExpression, truth
from hubweir.errors import HubweirError

DEPLOYMENTS = "microsoft.resources/deployments"
EVENT_HUB, SERVICE_BUS = "microsoft.eventhub", "microsoft.servicebus"
DEPLOYMENTS_DEPTH = 8

Document = dict[str, Any]


class BadTemplate(HubweirError):
    """A template that cannot be imported: which resource, and why."""


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """kind: in lower case, without the provider: namespaces, namespaces/eventhubs… names: one for each word of it."""

    provider: str
    kind: str
    names: tuple[str, ...]
    body: Mapping[str, Any]


@dataclass(slots=True)
class _ImportedNamespace:
    """A namespace on its way into a Config.json."""

    name: str
    settings: Document = field(default_factory=dict)
    rules: list[Document] = field(default_factory=list)
    hubs: dict[str, Document] = field(default_factory=dict)
    queues: dict[str, Document] = field(default_factory=dict)
    topics: dict[str, Document] = field(default_factory=dict)


def config_of_template(
    template: Mapping[str, Any], parameters: Mapping[str, Any], *, group: str, tell: Callable[[str], None]
) -> Document:
    """The Config.json of a template. parameters: given, over its defaults. group: name of the resource group.

    tell: of what is left out. Raises BadTemplate.
    """
    spaces: dict[str, _ImportedNamespace] = {}
    try:
        # Parents first, whatever the order of the template.
        found = sorted(_resources(template, parameters, group, tell, 0), key=lambda each: len(each.names))
        for resource in found:
            _take(spaces, resource, tell)
    except BadExpression as error:
        raise BadTemplate(str(error)) from None
    if not spaces:
        raise BadTemplate("the template has no namespace of Microsoft.EventHub or Microsoft.ServiceBus")
    return _document(spaces.values())


def _resources(
    template: Mapping[str, Any], given: Mapping[str, Any], group: str, tell: Callable[[str], None], depth: int
) -> Iterator[TemplateResource]:
    """Every resource that a template makes."""
    if depth > DEPLOYMENTS_DEPTH:
        raise BadTemplate("deployments are nested deeper than 8 levels")
    if not isinstance(template.get("resources"), list | dict):
        raise BadTemplate("it is no template: it has no resources")
    declared = _object(template, "parameters")
    by_name = {name.lower(): value for name, value in given.items()}
    unknown = sorted(by_name.keys() - {name.lower() for name in declared})
    if unknown:
        raise BadTemplate(f"the template has no parameter '{unknown[0]}'; it has {', '.join(declared) or 'none'}")
    values = {}
    for name in declared:
        told = _object(declared, name)
        if name.lower() in by_name:
            values[name] = by_name[name.lower()]
        elif "defaultValue" in told:
            values[name] = TemplateScope(values, {}, group=group).value(told["defaultValue"])
    scope = TemplateScope(values, _object(template, "variables"), group=group)
    for written in _list(template["resources"]):
        yield from _made(written, scope, (), "", tell, depth, group)


def _made(
    written: Mapping[str, Any],
    scope: TemplateScope,
    parents: tuple[str, ...],
    parent_type: str,
    tell: Callable[[str], None],
    depth: int,
    group: str,
) -> Iterator[TemplateResource]:
    """A resource, once for each copy, and what is nested in it."""
    kind = str(written.get("type", ""))
    full = f"{parent_type}/{kind}" if parent_type else kind
    provider, _, words = full.lower().partition("/")
    is_deployment = kind.lower() == DEPLOYMENTS
    if kind and not is_deployment and provider not in (EVENT_HUB, SERVICE_BUS):
        _leave_out(written, full, scope, tell)
        return
    for inside in _copies(written, scope):
        if not truth(inside.value(written.get("condition", True))) or written.get("existing") is True:
            continue
        name = inside.value(written.get("name", ""))
        if not isinstance(name, str) or not kind:
            raise BadTemplate("a resource has no type or no name that is a text")
        if is_deployment:
            properties = _object(written, "properties")
            said = _object(properties, "parameters")
            given = {each: inside.value(_object(said, each).get("value")) for each in said}
            yield from _resources(_object(properties, "template"), given, group, tell, depth + 1)
            continue
        names = (*parents, *name.split("/"))
        if len(words.split("/")) != len(names):
            raise BadTemplate(f"the resource {full} is named {'/'.join(names)}: a name is needed for each of its words")
        body = {
            member: inside.value(value)
            for member, value in written.items()
            if member in ("sku", "properties", "identity")
        }
        yield TemplateResource(provider, words, names, body)
        for child in _list(written.get("resources", [])):
            yield from _made(child, inside, names, full, tell, depth, group)


def _leave_out(written: Mapping[str, Any], full: str, scope: TemplateScope, tell: Callable[[str], None]) -> None:
    """Tell of a resource that is not made here. Its name may need functions that are not known here."""
    try:
        for inside in _copies(written, scope):
            if truth(inside.value(written.get("condition", True))):
                tell(f"left out: {full} {inside.value(written.get('name', ''))}")
    except BadExpression:
        tell(f"left out: {full} {written.get('name', '')}")


def _copies(written: Mapping[str, Any], scope: TemplateScope) -> Iterator[TemplateScope]:
    if written.get("copy") is None:
        yield scope
    else:
        yield from scope.copies(_object(written, "copy"))


# Into a Config.json


def _take(spaces: dict[str, _ImportedNamespace], resource: TemplateResource, tell: Callable[[str], None]) -> None:
    name, *rest = resource.names
    properties = _object(resource.body, "properties")
    space = spaces.get(name.lower()) or _ImportedNamespace(name)
    match resource.kind, rest:
        case "namespaces", []:
            _take_namespace(space, resource.body, properties)
        case "namespaces/authorizationrules", [rule]:
            space.rules.append(_rule(rule, properties))
        case "namespaces/eventhubs", [hub]:
            space.hubs.setdefault(hub.lower(), {"Name": hub}).update(_hub(properties))
        case "namespaces/eventhubs/consumergroups", [hub, group]:
            if group.lower() != "$default":
                space.hubs.setdefault(hub.lower(), {"Name": hub}).setdefault("ConsumerGroups", []).append(
                    {"Name": group}
                )
        case "namespaces/eventhubs/authorizationrules", [hub, rule]:
            _rules(space.hubs.setdefault(hub.lower(), {"Name": hub})).append(_rule(rule, properties))
        case "namespaces/queues", [queue]:
            _properties(space.queues, queue).update(_large(properties))
        case "namespaces/queues/authorizationrules", [queue, rule]:
            _rules(_properties(space.queues, queue)).append(_rule(rule, properties))
        case "namespaces/topics", [topic]:
            _properties(space.topics, topic).update(_large(properties))
        case "namespaces/topics/authorizationrules", [topic, rule]:
            _rules(_properties(space.topics, topic)).append(_rule(rule, properties))
        case "namespaces/topics/subscriptions", [topic, subscription]:
            _subscription(space, topic, subscription).setdefault("Properties", {}).update(_large(properties))
        case "namespaces/topics/subscriptions/rules", [topic, subscription, rule]:
            made = {"Name": rule, "Properties": _filter(properties)}
            _subscription(space, topic, subscription).setdefault("Rules", []).append(made)
        case _:
            tell(f"left out: {resource.provider}/{resource.kind} {'/'.join(resource.names)}")
            return
    spaces[name.lower()] = space


def _take_namespace(space: _ImportedNamespace, body: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
    sku = _object(body, "sku")
    if sku.get("name"):
        space.settings["Sku"] = sku["name"]
    if sku.get("capacity") and str(sku.get("name", "")).lower() != "premium":
        space.settings["ThroughputUnits"] = sku["capacity"]
    if properties.get("isAutoInflateEnabled"):
        space.settings["MaximumThroughputUnits"] = properties.get("maximumThroughputUnits")
        space.settings["IsAutoInflateEnabled"] = True


def _hub(properties: Mapping[str, Any]) -> Document:
    told = {name: value for name, value in properties.items() if name not in ("retentionDescription",)}
    hub: Document = _large(told)
    retention = _object(properties, "retentionDescription")
    if retention.get("retentionTimeInHours"):
        hub["RetentionTimeInHours"] = retention["retentionTimeInHours"]
        hub.pop("MessageRetentionInDays", None)
    if retention.get("cleanupPolicy"):
        hub["CleanupPolicy"] = retention["cleanupPolicy"]
    capture = hub.get("CaptureDescription")
    if isinstance(capture, dict) and isinstance(capture.get("Destination"), dict):
        destination = capture["Destination"]
        destination.update(destination.pop("Properties", None) or {})
        destination.pop("Identity", None)
    hub.setdefault("PartitionCount", 4)
    return hub


def _rule(name: str, properties: Mapping[str, Any]) -> Document:
    return {"KeyName": name, "Rights": properties.get("rights", [])}


def _filter(properties: Mapping[str, Any]) -> Document:
    """A rule's properties; the types of filters have shorter names in a Config.json."""
    told: Document = _large(properties)
    kind = str(told.get("FilterType") or ("CorrelationFilter" if told.get("CorrelationFilter") else "SqlFilter"))
    told["FilterType"] = kind.removesuffix("Filter")
    for member in ("SqlFilter", "Action"):
        if isinstance(told.get(member), dict):
            told[member] = {name: value for name, value in told[member].items() if name == "SqlExpression"}
    if not told.get("Action"):
        told.pop("Action", None)
    correlation = properties.get("correlationFilter")
    if isinstance(correlation, dict) and correlation.get("properties"):
        told["CorrelationFilter"]["Properties"] = correlation["properties"]  # names of the messages' own properties
    return told


def _properties(entities: dict[str, Document], name: str) -> Document:
    """Properties of a queue or a topic."""
    found: Document = entities.setdefault(name.lower(), {"Name": name}).setdefault("Properties", {})
    return found


def _rules(of: Document) -> list[Document]:
    found: list[Document] = of.setdefault("AuthorizationRules", [])
    return found


def _subscription(space: _ImportedNamespace, topic: str, name: str) -> Document:
    of_topic = space.topics.setdefault(topic.lower(), {"Name": topic, "Properties": {}})
    subscriptions: list[Document] = of_topic.setdefault("Subscriptions", [])
    for each in subscriptions:
        if each["Name"].lower() == name.lower():
            return each
    subscriptions.append({"Name": name})
    return subscriptions[-1]


def _large(value: Any) -> Any:
    """Members by the words of a Config.json; null is the same as left out."""
    if isinstance(value, dict):
        return {name[:1].upper() + name[1:]: _large(each) for name, each in value.items() if each is not None}
    return [_large(each) for each in value] if isinstance(value, list) else value


def _document(spaces: Any) -> Document:
    hubs, buses = [], []
    for space in spaces:
        more = {"AuthorizationRules": space.rules} if space.rules else {}
        common = {"Name": space.name, **space.settings, **more}
        has_messages = bool(space.queues or space.topics)
        if space.hubs or not has_messages:
            hubs.append({**common, "Entities": list(space.hubs.values())})
            common = {"Name": space.name}
        if has_messages:
            found = {"Queues": list(space.queues.values()), "Topics": list(space.topics.values())}
            buses.append({**common, **{name: value for name, value in found.items() if value}})
    roots = {"NamespaceConfig": hubs, "Namespaces": buses}
    config: Document = {name: value for name, value in roots.items() if value}
    return {"UserConfig": {**config, "LoggingConfig": {"Type": "Console"}}}


def _object(of: Mapping[str, Any], member: str) -> Mapping[str, Any]:
    value = of.get(member) or {}
    if not isinstance(value, dict):
        raise BadTemplate(f"the member {member} is no object")
    return value


def _list(resources: Any) -> list[Mapping[str, Any]]:
    """Resources of a list, or of an object of symbolic names."""
    found = list(resources.values()) if isinstance(resources, dict) else resources
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise BadTemplate("resources are a list, or an object, of objects")
    return found
