"""Creates, changes and deletes the authorization rules of the namespace and of each entity, for both management doors.

A level is an entity, by its name, or the namespace: None. Authorisation is the door's. Whatever changes bites at once:
the catalog tells every connection, which takes its claims anew (gateway/amqp/connection_claims.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from hubweir.auth.authorization_rule import KEY_BYTES, AuthorizationRule, Rights, Secret, new_key
from hubweir.env import Env
from hubweir.errors import NOT_ALLOWED, ServiceError
from hubweir.gateway.keeper.keeper import Keeper
from hubweir.namespace.catalog_writer import OnRules
from hubweir.namespace.namespace import Namespace
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rule_changes import RuleKey, RuleLevel

OnRule = Callable[[AuthorizationRule | ServiceError], None]


class RuleManagement:
    """See the module's text. Every on_done is called once, on the loop, with the rule or a ServiceError.

    settings_rule: the rule of the namespace whose rights and primary key only a start gives; "": none.
    """

    def __init__(self, namespace: Namespace, keeper: Keeper, env: Env, *, settings_rule: str = "") -> None:
        self._namespace = namespace
        self._keeper = keeper
        self._env = env
        self._settings_rule = settings_rule

    def rules(self, level: str | None) -> tuple[AuthorizationRule, ...]:
        """The rules of a level, an entity's without the namespace's; ServiceError NOT_FOUND."""
        return self._namespace.rule_level(level).rules

    def rule(self, level: str | None, name: str) -> AuthorizationRule:
        """The rule; ServiceError NOT_FOUND."""
        return self._namespace.rule(level, name)

    def create(
        self, level: str | None, name: str, rights: Rights, on_done: OnRule, *, primary: Secret, secondary: Secret
    ) -> None:
        """Make a rule. An empty key is made here, from randomness."""
        rule = AuthorizationRule(name, rights, primary or self.new_key(), secondary or self.new_key())
        self._keeper.change_rules(level, partial(RuleLevel.create, rule=rule), self._then_show(name, on_done))

    def change(self, level: str | None, name: str, rights: Rights, on_done: OnRule) -> None:
        """Give a rule other rights. Raises ServiceError NOT_ALLOWED for the rule of the settings."""
        self._check_is_ours(level, name, "rights are all three")
        self._keeper.change_rules(
            level, partial(RuleLevel.change, name=name, rights=rights), self._then_show(name, on_done)
        )

    def renew(self, level: str | None, name: str, key: RuleKey, on_done: OnRule, *, secret: Secret) -> None:
        """Put another key in the place of one; an empty secret is made here. What the old key signed ends now."""
        if key is RuleKey.PRIMARY:
            self._check_is_ours(level, name, "primary key is that of a Config.json, or the setting 'key'")
        made = secret or self.new_key()
        change = partial(RuleLevel.renew, name=name, key=key, secret=made)
        self._keeper.change_rules(level, change, self._then_show(name, on_done))

    def delete(self, level: str | None, name: str, on_done: OnRule) -> None:
        """Remove a rule; what its keys signed ends now. on_done: what it was."""
        self._check_is_ours(level, name, "primary key is that of a Config.json, or the setting 'key'")
        gone = self._namespace.rule(level, name)

        def removed(result: RuleLevel | ServiceError) -> None:
            on_done(result if isinstance(result, ServiceError) else gone)

        self._keeper.change_rules(level, partial(RuleLevel.remove, name=name), removed)

    def new_key(self) -> Secret:
        """A key that nobody has, from randomness."""
        return new_key(self._env.random_bytes(KEY_BYTES))

    def _then_show(self, name: str, on_done: OnRule) -> OnRules:
        """Answer a change of a level's rules with the rule of that name."""
        return lambda result: on_done(result if isinstance(result, ServiceError) else result.rule(name))

    def _check_is_ours(self, level: str | None, name: str, what: str) -> None:
        """A change that the next start would take back is refused: a replaced key must stay dead."""
        if level is None and self._settings_rule and fold(name) == fold(self._settings_rule):
            text = (
                f"A start of the service gives the rule '{self._settings_rule}' its rights and key: its {what}. "
                "Change that and start again; or renew its secondary key, or use another rule."
            )
            raise ServiceError(NOT_ALLOWED, text)
