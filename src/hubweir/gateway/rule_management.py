"""One service for the management doors: the authorization rules of the namespace and of each hub.

A level is the namespace (hub None) or a hub. Authorisation is the door's. Whatever changes bites at once: the catalog
tells every connection, which takes its claims anew (gateway/amqp/connection_claims.py).
"""

from __future__ import annotations

from hubweir.auth.authorization_rule import KEY_BYTES, AuthorizationRule, Rights, Secret, new_key
from hubweir.env import Env
from hubweir.errors import NOT_ALLOWED, ServiceError
from hubweir.namespace.descriptions import NamespaceDescription
from hubweir.namespace.namespace import Namespace, OnRule
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_changes import RuleKey


class RuleManagement:
    """See the module's text. Every on_done is called once, on the loop, with the rule or a ServiceError.

    settings_rule: the rule of the namespace whose rights and primary key every start takes from the settings; "": none.
    """

    def __init__(self, namespace: Namespace, env: Env, *, settings_rule: str = "") -> None:
        self._namespace = namespace
        self._env = env
        self._settings_rule = settings_rule

    def rules(self, hub: str | None) -> tuple[AuthorizationRule, ...]:
        """The rules of a level, the hub's without the namespace's; ServiceError NOT_FOUND."""
        return self._namespace.description.rules if hub is None else self._namespace.get_hub(hub).description.rules

    def rule(self, hub: str | None, name: str) -> AuthorizationRule:
        """The rule; ServiceError NOT_FOUND."""
        return self._namespace.rule(hub, name)

    def create(
        self, hub: str | None, name: str, rights: Rights, on_done: OnRule, *, primary: Secret, secondary: Secret
    ) -> None:
        """Make a rule. An empty key is made here, from randomness."""
        rule = AuthorizationRule(name, rights, primary or self._new_key(), secondary or self._new_key())
        self._namespace.create_rule(hub, rule, on_done)

    def change(self, hub: str | None, name: str, rights: Rights, on_done: OnRule) -> None:
        """Give a rule other rights. Raises ServiceError NOT_ALLOWED for the rule of the settings."""
        self._check_is_ours(hub, name, "rights are all three")
        self._namespace.change_rule(hub, name, rights, on_done)

    def renew(self, hub: str | None, name: str, key: RuleKey, on_done: OnRule, *, secret: Secret) -> None:
        """Put another key in the place of one; an empty secret is made here. What the old key signed ends now."""
        if key is RuleKey.PRIMARY:
            self._check_is_ours(hub, name, "primary key is the setting 'key'")
        self._namespace.renew_key(hub, name, key, secret or self._new_key(), on_done)

    def delete(self, hub: str | None, name: str, on_done: OnRule) -> None:
        """Remove a rule; what its keys signed ends now. on_done: what it was."""
        self._check_is_ours(hub, name, "primary key is the setting 'key'")
        gone = self._namespace.rule(hub, name)

        def removed(result: NamespaceDescription | ServiceError) -> None:
            on_done(result if isinstance(result, ServiceError) else gone)

        self._namespace.remove_rule(hub, name, removed)

    def _new_key(self) -> Secret:
        return new_key(self._env.random_bytes(KEY_BYTES))

    def _check_is_ours(self, hub: str | None, name: str, what: str) -> None:
        """A change that the next start would take back is refused: a replaced key must stay dead."""
        if hub is None and self._settings_rule and fold(name) == fold(self._settings_rule):
            text = (
                f"Every start of the service takes the rule '{self._settings_rule}' from its settings: its {what}. "
                "Change the setting and start again; or renew its secondary key, or use another rule."
            )
            raise ServiceError(NOT_ALLOWED, text)
