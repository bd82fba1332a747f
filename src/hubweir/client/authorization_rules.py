"""The authorization rules of a namespace or of one hub, over `$management`: hubweir's own operations.

A level is a hub's name, or "" for the namespace; all need a token with Manage there. Keys come as Secret: whoever
wants the text calls `reveal`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hubweir.client.management import Management
from hubweir.namespace.secret import Secret

_RULE = "com.microsoft:authorizationrule"


@dataclass(frozen=True, slots=True)
class RuleInfo:
    """A rule without its keys. rights: Listen, Manage, Send."""

    name: str
    rights: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RuleKeys:
    """A rule's keys; an empty one is none."""

    name: str
    rights: tuple[str, ...]
    primary: Secret = field(repr=False)
    secondary: Secret = field(repr=False)


class AuthorizationRules(Management):
    """The management node of one connection, for rules."""

    async def list_rules(self, hub: str = "") -> list[RuleInfo]:
        """The rules of one level; a hub's list does not name the namespace's."""
        return [_info(body) for body in await self._ask_rule("LIST", hub)]

    async def rule(self, name: str, hub: str = "") -> RuleInfo:
        """ServiceError NOT_FOUND when there is no such rule."""
        return _info(await self._ask_rule("READ", hub, name))

    async def create_rule(
        self, name: str, rights: tuple[str, ...], hub: str = "", *, primary: str = "", secondary: str = ""
    ) -> RuleKeys:
        """Make a rule; an empty key is made by the service. ServiceError ENTITY_EXISTS, RESOURCE_LIMIT."""
        given = {"primary_key": primary, "secondary_key": secondary}
        body = {"rights": list(rights), **{key: value for key, value in given.items() if value}}
        return _keys(await self._ask_rule("CREATE", hub, name, body))

    async def change_rule(self, name: str, rights: tuple[str, ...], hub: str = "") -> RuleInfo:
        """Give a rule other rights; links that need one it lost end within 5 s."""
        return _info(await self._ask_rule("UPDATE", hub, name, {"rights": list(rights)}))

    async def delete_rule(self, name: str, hub: str = "") -> None:
        """Remove a rule; links that stand on its keys end within 5 s."""
        await self._ask_rule("DELETE", hub, name)

    async def keys(self, name: str, hub: str = "") -> RuleKeys:
        """Both keys of a rule."""
        return _keys(await self._ask_rule("READKEYS", hub, name))

    async def renew_key(self, name: str, key: str, hub: str = "", *, value: str = "") -> RuleKeys:
        """Another key in the place of key ("primary" or "secondary"); links that stand on the old one end."""
        body = {"key": key, **({"value": value} if value else {})}
        return _keys(await self._ask_rule("RENEWKEY", hub, name, body))

    async def _ask_rule(self, operation: str, hub: str, name: str = "", body: object = None) -> Any:
        await self.connection.authorization.authorize(hub)
        return await self._ask(operation, _RULE, hub, {"rule": name} if name else None, body=body)


def _info(body: dict[str, Any]) -> RuleInfo:
    return RuleInfo(body["name"], tuple(body["rights"]))


def _keys(body: dict[str, Any]) -> RuleKeys:
    keys = Secret(body["primary_key"]), Secret(body["secondary_key"])
    return RuleKeys(body["name"], tuple(body["rights"]), *keys)
