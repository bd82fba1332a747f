"""Requests of $management on authorization rules, hubweir's own: type com.microsoft:authorizationrule.

`name` is the entity, or empty for the namespace; `rule` the rule's name. All need Manage on that level.

| operation | body                                                | answer |
|-----------|-----------------------------------------------------|--------|
| LIST      |                                                     | 200, a list of maps: name, type, rights |
| READ      |                                                     | 200, that map of one rule |
| READKEYS  |                                                     | 200, that map, primary_key and secondary_key |
| CREATE    | rights (list); primary_key, secondary_key, optional | 201, with keys |
| UPDATE    | rights                                              | 200, without keys |
| RENEWKEY  | key ("primary" or "secondary"); value, optional     | 200, with keys |
| DELETE    |                                                     | 200, without keys |

Keys leave the service in answers that ask for them and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.auth.authorization_rule import AuthorizationRule, Secret
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.amqp.request_node import text_property
from hubweir.namespace.rights import Rights, parse_rights, right_name
from hubweir.namespace.rule_changes import RuleKey

if TYPE_CHECKING:
    from hubweir.gateway.rule_management import RuleManagement

AUTHORIZATION_RULE = "com.microsoft:authorizationrule"
OK, CREATED = 200, 201

# Told once: status code and body, or why not.
Answer = Callable[[int, object], None]
Refuse = Callable[[ServiceError], None]


def rule_map(rule: AuthorizationRule) -> dict[str, object]:
    """A rule without its keys."""
    rights = [right_name(right) for right in (Rights.LISTEN, Rights.MANAGE, Rights.SEND) if right in rule.rights]
    return {"name": rule.name, "type": AUTHORIZATION_RULE, "rights": rights}


def keys_map(rule: AuthorizationRule) -> dict[str, object]:
    """A rule with its keys; a key that it has not is empty."""
    return {**rule_map(rule), "primary_key": rule.primary.reveal(), "secondary_key": rule.secondary.reveal()}


def rule_request(rules: RuleManagement, operation: str, message: Message, answer: Answer, refuse: Refuse) -> None:
    """Do what an authorised request asks. Calls answer or refuse once, now or later; or raises ServiceError."""
    hub = text_property(message, "name") or None
    if operation == "LIST":
        _body(message)
        answer(OK, [rule_map(rule) for rule in rules.rules(hub)])
        return
    name, body = text_property(message, "rule"), _body(message, *_KEYS[operation])
    if not name:
        raise ServiceError(ARGUMENT_ERROR, "The request has no property 'rule' with the authorization rule's name.")

    def done(
        code: int, form: Callable[[AuthorizationRule], object]
    ) -> Callable[[AuthorizationRule | ServiceError], None]:
        return lambda result: refuse(result) if isinstance(result, ServiceError) else answer(code, form(result))

    match operation:
        case "READ":
            answer(OK, rule_map(rules.rule(hub, name)))
        case "READKEYS":
            answer(OK, keys_map(rules.rule(hub, name)))
        case "CREATE":
            primary, secondary = _secret(body, "primary_key"), _secret(body, "secondary_key")
            rules.create(hub, name, _rights(body), done(CREATED, keys_map), primary=primary, secondary=secondary)
        case "UPDATE":
            rules.change(hub, name, _rights(body), done(OK, rule_map))
        case "RENEWKEY":
            rules.renew(hub, name, _which(body), done(OK, keys_map), secret=_secret(body, "value"))
        case _:
            rules.delete(hub, name, done(OK, rule_map))


_KEYS: dict[str, tuple[str, ...]] = {
    "READ": (),
    "READKEYS": (),
    "CREATE": ("rights", "primary_key", "secondary_key"),
    "UPDATE": ("rights",),
    "RENEWKEY": ("key", "value"),
    "DELETE": (),
}
RULE_OPERATIONS = ("LIST", *_KEYS)


def _body(message: Message, *known: str) -> dict[object, object]:
    """The map in the body, which may be left out; a key that is not known is refused, its value not told."""
    value = message.body.value if isinstance(message.body, ValueBody) else None
    if value is None and (message.body is None or isinstance(message.body, ValueBody)):
        return {}
    if not isinstance(value, dict):
        raise ServiceError(ARGUMENT_ERROR, "The body must be one AMQP map with what the rule is to be.")
    for key in value:
        if key not in known:
            text = f"This operation on an authorization rule does not take {str(key)[:64]!r}."
            raise ServiceError(ARGUMENT_ERROR, text)
    return dict(value)


def _rights(body: dict[object, object]) -> Rights:
    names = body.get("rights")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ServiceError(ARGUMENT_ERROR, "The key 'rights' must be a list of Send, Listen, Manage.")
    return parse_rights(names)


def _secret(body: dict[object, object], key: str) -> Secret:
    value = body.get(key, "")
    if not isinstance(value, str):
        raise ServiceError(ARGUMENT_ERROR, f"The key {key!r} must be a string.")
    return Secret(value)


def _which(body: dict[object, object]) -> RuleKey:
    key = body.get("key")
    for one in RuleKey:
        if key == one.value:
            return one
    raise ServiceError(ARGUMENT_ERROR, "The key 'key' must be primary or secondary.")
