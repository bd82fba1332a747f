"""Authorization rules as ARM has them, of a namespace and of an event hub, a queue or a topic; their keys; new keys."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from hubweir.auth.authorization_rule import AuthorizationRule, Secret
from hubweir.errors import NOT_FOUND, ServiceError
from hubweir.gateway.arm.documents import Document, answer, page, resource
from hubweir.gateway.arm.look_and_act import look_and_act, look_and_delete
from hubweir.gateway.arm.operation import ArmCall
from hubweir.gateway.http.exchange import Response, answer_of
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.entity import EntityKind
from hubweir.namespace.host_names import bare_host
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights, parse_rights, right_name
from hubweir.namespace.rule_changes import RuleKey

_KEYS = {"primarykey": RuleKey.PRIMARY, "secondarykey": RuleKey.SECONDARY}
# Which type of resource a name in the path is of.
_TYPES = {"hub": "eventhubs", "queue": "queues", "topic": "topics"}
_KINDS = {"hub": EntityKind.EVENT_HUB, "queue": EntityKind.QUEUE, "topic": EntityKind.TOPIC}


def rule_document(call: ArmCall, rule: AuthorizationRule) -> Document:
    rights = [right_name(right) for right in (Rights.LISTEN, Rights.MANAGE, Rights.SEND) if right in rule.rights]
    types = [(_TYPES[name], call.names[name]) for name in _TYPES if name in call.names]
    segments = [segment for pair in types for segment in pair]
    name = call.gateway.settings.namespace
    resource_id = call.path.id_of("namespaces", name, *segments, "authorizationRules", rule.name)
    kind = "/".join((call.path.provider, "Namespaces", *(each for each, _ in types), "AuthorizationRules"))
    return resource(resource_id, kind, rule.name, {"rights": rights})


async def list_rules(call: ArmCall) -> Response:
    return page(call.request, call.gateway.rules.rules(_level(call)), partial(rule_document, call))


async def get_rule(call: ArmCall) -> Response:
    return answer(rule_document(call, call.gateway.rules.rule(_level(call), call.names["rule"])))


async def put_rule(call: ArmCall) -> Response:
    """Make a rule, whose keys are drawn, or give one other rights."""
    members = await call.members()
    members.pass_over("id", "name", "type", "location", "systemData")
    properties = members.members("properties")
    members.finish()
    rights = parse_rights(properties.texts("rights") or [])
    properties.finish()
    name, rules = call.names["rule"], call.gateway.rules

    async def attempt() -> AuthorizationRule:
        level = _level(call)
        known = _find(call, level)
        if known is None:
            return await answer_of(partial(rules.create, level, name, rights, primary=Secret(""), secondary=Secret("")))
        return known if known.rights == rights else await answer_of(partial(rules.change, level, name, rights))

    return answer(rule_document(call, await look_and_act(attempt)))


async def delete_rule(call: ArmCall) -> Response:
    def find() -> Awaitable[object] | None:
        level = _level(call)
        if _find(call, level) is None:
            return None
        return answer_of(partial(call.gateway.rules.delete, level, call.names["rule"]))

    return await look_and_delete(find)


async def list_keys(call: ArmCall) -> Response:
    return answer(_keys(call, call.gateway.rules.rule(_level(call), call.names["rule"])))


async def regenerate_keys(call: ArmCall) -> Response:
    """Put another key in the place of one; what the old one signed ends."""
    members = await call.members()
    kind, key = members.text("keyType"), members.text("key")
    members.finish()
    which = _KEYS.get(fold(kind or ""))
    if which is None:
        raise members.wrong("keyType", "PrimaryKey or SecondaryKey")
    renew = partial(call.gateway.rules.renew, _level(call), call.names["rule"], which, secret=Secret(key or ""))
    return answer(_keys(call, await answer_of(renew)))


def _level(call: ArmCall) -> str | None:
    """The entity whose rules they are; None: the namespace's. NOT_FOUND for an entity of another kind."""
    for name, kind in _KINDS.items():
        if name in call.names:
            found = call.gateway.namespace.find_any(call.names[name])
            if found is None or found.kind is not kind:
                raise ServiceError(NOT_FOUND, f"There is no {kind.noun} '{call.names[name][:128]}'.")
            return found.name
    return None


def _find(call: ArmCall, level: str | None) -> AuthorizationRule | None:
    """The rule that the path names, of those of a level."""
    name = fold(call.names["rule"])
    return next((each for each in call.gateway.rules.rules(level) if fold(each.name) == name), None)


def _keys(call: ArmCall, rule: AuthorizationRule) -> Document:
    entity = _level(call)
    told: Document = {"keyName": rule.name}
    for name, key in (("primary", rule.primary), ("secondary", rule.secondary)):
        if key:
            told[f"{name}Key"] = key.reveal()
            told[f"{name}ConnectionString"] = _connection_string(call, rule.name, key, entity)
    return told


def _connection_string(call: ArmCall, rule: str, key: Secret, entity: str | None) -> str:
    """With the host that the request came to, unless that leads to another namespace."""
    authority = call.request.base_uri.partition("://")[2]
    named = call.gateway.process.named(authority)
    host = bare_host(authority) if named in (None, call.gateway) else call.gateway.settings.host_name
    port = authority.rpartition("]")[2].partition(":")[2]
    return ConnectionString(
        host=host, port=int(port) if port.isdigit() else None, key_name=rule, key=key, entity_path=entity
    ).format()
