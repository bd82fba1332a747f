"""Rules of subscriptions as ARM has them: an SQL filter or a correlation filter, and an action."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import partial

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.arm.documents import Document, answer, page, resource
from hubweir.gateway.arm.look_and_act import look_and_act, look_and_delete
from hubweir.gateway.arm.members import Members
from hubweir.gateway.arm.operation import ArmCall
from hubweir.gateway.http.exchange import Response, answer_of
from hubweir.gateway.http.rule_xml import FALSE_SQL, TRUE_SQL
from hubweir.namespace.names import check_subscription_rule_name
from hubweir.namespace.subscription_description import SubscriptionDescription, subscription_path
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    FalseFilterDescription,
    NamedValue,
    RuleFilter,
    SqlActionDescription,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    TrueFilterDescription,
    ValueType,
)

# Members of a correlation filter, and the fields of its description.
CORRELATION = {
    "correlationId": "correlation_id",
    "messageId": "message_id",
    "to": "to",
    "replyTo": "reply_to",
    "label": "label",
    "sessionId": "session_id",
    "replyToSessionId": "reply_to_session_id",
    "contentType": "content_type",
}
SQL, CORRELATED = "SqlFilter", "CorrelationFilter"
COMPATIBILITY_LEVEL = 20


def rule_document(call: ArmCall, rule: SubscriptionRuleDescription) -> Document:
    names = call.names
    resource_id = call.path.id_of(
        "namespaces", call.gateway.settings.namespace, "topics", names["topic"], "subscriptions",
        names["subscription"], "rules", rule.name,
    )  # fmt: skip
    kind = f"{call.path.provider}/Namespaces/Topics/Subscriptions/Rules"
    action: Document = {} if rule.action is None else _sql(rule.action.expression)
    return resource(resource_id, kind, rule.name, {"action": action, **_filter_document(rule.filter)})


async def list_rules(call: ArmCall) -> Response:
    subscription = call.gateway.namespace.get(_path(call), SubscriptionDescription)
    rules = list(call.gateway.namespace.subscription_rules(subscription.name).listed())
    return page(call.request, rules, partial(rule_document, call))


async def get_rule(call: ArmCall) -> Response:
    return answer(rule_document(call, call.gateway.namespace.subscription_rule(_path(call), call.names["rule"])))


async def put_rule(call: ArmCall) -> Response:
    """Make a rule, or replace the one of its name."""
    name = check_subscription_rule_name(call.names["rule"])
    wanted = _wanted(await call.members(), name)
    namespace, rules = call.gateway.namespace, call.gateway.subscription_rules

    async def attempt() -> SubscriptionRuleDescription:
        subscription = namespace.get(_path(call), SubscriptionDescription).name
        is_there = namespace.subscription_rules(subscription).find(name) is not None
        return await answer_of(partial(rules.replace if is_there else rules.create, subscription, wanted))

    return answer(rule_document(call, await look_and_act(attempt)))


async def delete_rule(call: ArmCall) -> Response:
    namespace, name = call.gateway.namespace, call.names["rule"]

    def find() -> Awaitable[object] | None:
        subscription = namespace.find(_path(call), SubscriptionDescription)
        if subscription is None or namespace.subscription_rules(subscription.name).find(name) is None:
            return None
        return answer_of(partial(call.gateway.subscription_rules.delete, subscription.name, name))

    return await look_and_delete(find)


# Parts


def _path(call: ArmCall) -> str:
    return subscription_path(call.names["topic"], call.names["subscription"])


def _wanted(members: Members, name: str) -> SubscriptionRuleDescription:
    members.pass_over("id", "name", "type", "location", "systemData")
    properties = members.members("properties")
    members.finish()
    kind, sql = properties.text("filterType"), properties.members("sqlFilter")
    correlation, action = properties.members("correlationFilter"), properties.members("action")
    properties.finish()
    expression = _expression(sql)
    asked = _correlation(correlation)
    wanted = _expression(action)
    if kind not in (None, SQL, CORRELATED):
        raise properties.wrong("filterType", f"{SQL} or {CORRELATED}")
    if kind == CORRELATED or (kind is None and asked is not None):
        if asked is None or expression is not None:
            raise ServiceError(ARGUMENT_ERROR, f"A rule of the type {CORRELATED} has a 'correlationFilter' alone.")
        chosen: RuleFilter = asked
    elif kind == SQL or expression is not None:
        if expression is None or asked is not None:
            raise ServiceError(ARGUMENT_ERROR, f"A rule of the type {SQL} has a 'sqlFilter' alone.")
        constants: dict[str, RuleFilter] = {TRUE_SQL: TrueFilterDescription(), FALSE_SQL: FalseFilterDescription()}
        chosen = constants.get(expression, SqlFilterDescription(expression))
    else:
        chosen = TrueFilterDescription()
    return SubscriptionRuleDescription(name, chosen, None if wanted is None else SqlActionDescription(wanted))


def _expression(members: Members) -> str | None:
    expression = members.text("sqlExpression")
    members.pass_over("compatibilityLevel", "requiresPreprocessing")
    members.finish()
    return expression or None


def _correlation(members: Members) -> CorrelationFilterDescription | None:
    texts = {field: members.text(name) for name, field in CORRELATION.items()}
    properties = members.own_texts("properties") or {}
    members.pass_over("requiresPreprocessing")
    members.finish()
    values = [NamedValue(name, ValueType.STRING, text) for name, text in properties.items()]
    if not values and not any(text is not None for text in texts.values()):
        return None
    return CorrelationFilterDescription(**texts, properties=tuple(values))


def _filter_document(chosen: RuleFilter) -> Document:
    match chosen:
        case TrueFilterDescription():
            return {"filterType": SQL, "sqlFilter": _sql(TRUE_SQL)}
        case FalseFilterDescription():
            return {"filterType": SQL, "sqlFilter": _sql(FALSE_SQL)}
        case SqlFilterDescription(expression):
            return {"filterType": SQL, "sqlFilter": _sql(expression)}
    told: Document = {name: getattr(chosen, field) for name, field in CORRELATION.items()}
    told = {name: text for name, text in told.items() if text is not None}
    if chosen.properties:
        told["properties"] = {each.name: each.text for each in chosen.properties}
    return {"filterType": CORRELATED, "correlationFilter": told}


def _sql(expression: str) -> Document:
    return {"sqlExpression": expression, "compatibilityLevel": COMPATIBILITY_LEVEL}
