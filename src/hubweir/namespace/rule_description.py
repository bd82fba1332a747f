"""Description of an authorization rule: a named pair of keys and what they allow."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, RESOURCE_LIMIT, ServiceError
from hubweir.namespace.names import check_rule_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights, check_rights
from hubweir.namespace.secret import KEY_LIMIT, Secret

RULES_PER_LEVEL_LIMIT = 12


@dataclass(frozen=True, slots=True)
class AuthorizationRuleDescription:
    """A rule of the namespace or of one entity. secondary may be an empty Secret."""

    name: str
    rights: Rights
    primary: Secret
    secondary: Secret


Rules = tuple[AuthorizationRuleDescription, ...]


def check_rule(rule: AuthorizationRuleDescription) -> AuthorizationRuleDescription:
    """The rule, when name, rights and keys are legal. Raises ServiceError ARGUMENT_OUT_OF_RANGE."""
    check_rule_name(rule.name)
    check_rights(rule.rights)
    for key, required in ((rule.primary, True), (rule.secondary, False)):
        size = len(key.reveal())
        if size > KEY_LIMIT or (required and not size):
            raise ServiceError(
                ARGUMENT_OUT_OF_RANGE,
                f"A key of rule '{rule.name}' has {size} characters; 1 to {KEY_LIMIT} are allowed.",
            )
    return rule


def check_rules(title: str, rules: Rules) -> Rules:
    """The rules of an entity, when each is legal, no name comes twice in any case, and there are not too many.

    title: of the entity, as texts have it.
    """
    if len(rules) > RULES_PER_LEVEL_LIMIT:
        text = f"{title}: {len(rules)} authorization rules; at most {RULES_PER_LEVEL_LIMIT} are allowed."
        raise ServiceError(RESOURCE_LIMIT, text)
    names = {fold(check_rule(rule).name) for rule in rules}
    if len(names) < len(rules):
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"{title}: two authorization rules have one name.")
    return rules
