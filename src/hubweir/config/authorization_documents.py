"""Authorization rules as a Config.json has them, without their keys."""

from __future__ import annotations

from hubweir.config.emulator_entities import AuthorizationRuleConfig
from hubweir.namespace.rights import Rights, right_name

_RIGHTS = (Rights.LISTEN, Rights.SEND, Rights.MANAGE)


def authorization_rule_document(rule: AuthorizationRuleConfig) -> dict[str, object]:
    """An element of AuthorizationRules; a start draws keys for it."""
    return {"KeyName": rule.name, "Rights": rights_words(rule.rights)}


def rights_words(rights: Rights) -> list[str]:
    """`Listen`, `Send`, `Manage`, those that are there."""
    return [right_name(right) for right in _RIGHTS if right in rights]
