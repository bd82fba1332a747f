"""The filters of a subscription: listed, made, changed and deleted, each with its action."""

from __future__ import annotations

from functools import partial

from hubweir.errors import ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.portal.form import Form
from hubweir.portal.paging import page_of
from hubweir.portal.subscription_rule_form import KIND, SYSTEM_FIELDS, read_rule_form, rule_values
from hubweir.portal.visit import Visit


async def rules(visit: Visit) -> Response:
    return _show_list(visit)


async def rule(visit: Visit) -> Response:
    """The form of one rule, or of a new one."""
    subscription, name = visit.entity(SubscriptionDescription).name, visit.query.get("rule", "")
    if not name:
        return _show_form(visit, {"kind": "sql"}, known="")
    found = visit.gateway.namespace.subscription_rule(subscription, name)
    try:
        values = rule_values(found)
    except ServiceError as refusal:
        return _show_list(visit, refusal)
    return _show_form(visit, values, known=found.name)


async def put_rule(visit: Visit) -> Response:
    """Make the rule that was entered, or put it in the place of the one that the form was opened with."""
    subscription, known = visit.entity(SubscriptionDescription).name, visit.form.get("known", "")
    management = visit.gateway.subscription_rules
    try:
        wanted = read_rule_form(visit.form, known or visit.form.get("name", "").strip())
        put = management.replace if known else management.create
        await visit.ask(partial(put, subscription, wanted))
    except ServiceError as refusal:
        return _show_form(visit, visit.form, known=known, problem=refusal)
    return visit.go("rules", subscription, notice="filter-saved")


async def delete_rule(visit: Visit) -> Response:
    subscription, name = visit.entity(SubscriptionDescription).name, visit.form.get("name", "")
    try:
        await visit.ask(partial(visit.gateway.subscription_rules.delete, subscription, name))
    except ServiceError as refusal:
        return _show_list(visit, refusal)
    return visit.go("rules", subscription, notice="filter-deleted")


def _show_list(visit: Visit, problem: ServiceError | None = None) -> Response:
    found = visit.entity(SubscriptionDescription)
    page = page_of(visit.query, list(visit.gateway.namespace.subscription_rules(found.name).listed()))
    return visit.show_form("rules.html", problem, entity=found, page=page)


def _show_form(visit: Visit, values: Form, *, known: str, problem: ServiceError | None = None) -> Response:
    """known: the name of the rule that is changed; "" for a new one."""
    return visit.show_form(
        "rule.html",
        problem,
        entity=visit.entity(SubscriptionDescription),
        values=values,
        known=known,
        kind=KIND,
        system_fields=SYSTEM_FIELDS,
    )
