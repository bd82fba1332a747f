"""Shared access policies of the namespace or of one entity: made, changed, deleted; keys shown when asked for, renewed.

Keys leave in the answer to a form that asks for them and nowhere else.
"""

from __future__ import annotations

from functools import partial

from hubweir.auth.authorization_rule import AuthorizationRule, Secret
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.exchange import Response
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights, check_rights
from hubweir.namespace.rule_changes import RuleKey
from hubweir.portal.client_strings import connection_strings
from hubweir.portal.form_fields import flag
from hubweir.portal.visit import Visit

RIGHTS = (("manage", Rights.MANAGE), ("send", Rights.SEND), ("listen", Rights.LISTEN))


async def policies(visit: Visit) -> Response:
    return _show(visit)


async def create_policy(visit: Visit) -> Response:
    name = visit.form.get("name", "").strip()
    try:
        create = partial(visit.gateway.rules.create, _level(visit), name, _rights(visit))
        await visit.ask(partial(create, primary=Secret(""), secondary=Secret("")))
    except ServiceError as refusal:
        return _show(visit, refusal)
    return visit.go(visit.page, visit.name, notice="policy-created")


async def policy(visit: Visit) -> Response:
    """One policy, without its keys."""
    return _show_policy(visit, visit.gateway.rules.rule(_level(visit), visit.query.get("policy", "")))


async def show_keys(visit: Visit) -> Response:
    """One policy with its keys, and the connection strings that they make."""
    return _show_policy(visit, visit.gateway.rules.rule(_level(visit), visit.form.get("policy", "")), has_keys=True)


async def renew_key(visit: Visit) -> Response:
    """Another key in the place of one, which is shown. What the old key signed ends now, this session too if it did."""
    name, which = visit.form.get("policy", ""), visit.form.get("key", "")
    if which not in (key.value for key in RuleKey):
        raise ServiceError(ARGUMENT_ERROR, "A policy has a primary and a secondary key.")
    renew = partial(visit.gateway.rules.renew, _level(visit), name, RuleKey(which))
    try:
        rule = await visit.ask(partial(renew, secret=Secret("")))
    except ServiceError as refusal:
        return _show_policy(visit, visit.gateway.rules.rule(_level(visit), name), problem=refusal)
    return _show_policy(visit, rule, has_keys=True)


async def change_rights(visit: Visit) -> Response:
    name = visit.form.get("policy", "")
    try:
        await visit.ask(partial(visit.gateway.rules.change, _level(visit), name, _rights(visit)))
    except ServiceError as refusal:
        return _show_policy(visit, visit.gateway.rules.rule(_level(visit), name), problem=refusal)
    return visit.go(visit.page.replace("rights", "policy"), visit.name, policy=name, notice="changed")


async def delete_policy(visit: Visit) -> Response:
    name = visit.form.get("policy", "")
    try:
        await visit.ask(partial(visit.gateway.rules.delete, _level(visit), name))
    except ServiceError as refusal:
        return _show_policy(visit, visit.gateway.rules.rule(_level(visit), name), problem=refusal)
    return visit.go("entity-policies" if visit.name else "policies", visit.name, notice="policy-deleted")


def _level(visit: Visit) -> str | None:
    """The entity whose policies they are, or None for the namespace's; ServiceError NOT_FOUND."""
    return visit.any_entity().name if visit.name else None


def _rights(visit: Visit) -> Rights:
    """What was ticked. Manage is ticked together with the other two, as in the service's portal."""
    rights = Rights.NONE
    for name, right in RIGHTS:
        if flag(visit.form, name):
            rights |= Rights.ALL if right is Rights.MANAGE else right
    return check_rights(rights)


def _show(visit: Visit, problem: ServiceError | None = None) -> Response:
    rules = visit.gateway.rules.rules(_level(visit))
    return visit.show_form("policies.html", problem, entity=_entity(visit), policies=rules, values=visit.form)


def _show_policy(
    visit: Visit, rule: AuthorizationRule, *, has_keys: bool = False, problem: ServiceError | None = None
) -> Response:
    own = visit.identity.session
    level = _level(visit) or ""
    return visit.show_form(
        "policy.html",
        problem,
        entity=_entity(visit),
        policy=rule,
        keys=connection_strings(visit, rule, level) if has_keys else (),
        is_own=fold(own.rule) == fold(rule.name) and own.entity == level,
        prefix="entity-" if visit.name else "",
    )


def _entity(visit: Visit) -> object:
    return visit.any_entity() if visit.name else None
