"""The settings of a served namespace that change when they are read anew, and those that wait for the next start.

Name, profile, host names and which namespace is the default one are what connections and processes were told: they
stay. The root rule's key, units and the entities of a Config.json change at once.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from functools import partial

from hubweir.config.emulator_entities import NamespaceConfig
from hubweir.config.namespaces_at_start import NamespaceSettings
from hubweir.config.problems import EmulatorFileError
from hubweir.config.settings import ROOT_RULE
from hubweir.errors import ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import answer_of
from hubweir.gateway.namespace_units import NamespaceUnits
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_changes import RuleLevel
from hubweir.namespace.rule_description import AuthorizationRuleDescription, Rules
from hubweir.namespace.secret import Secret
from hubweir.service.desired_entities import make_entities


@dataclass(frozen=True, slots=True)
class SettingOutcome:
    """What became of a thing that is said otherwise now. waits: what is said, when it holds from the next start on.

    is_wrong: it was refused, and stays as it was.
    """

    what: str
    outcome: str
    waits: str = ""
    is_wrong: bool = False

    @property
    def text(self) -> str:
        return f"{self.outcome} until the next start; said is {self.waits}" if self.waits else self.outcome


async def change_namespace(gateway: Gateway, wanted: NamespaceSettings) -> list[SettingOutcome]:
    """Change what may change of a namespace; what became of each thing that is said otherwise."""
    of, known = f"namespace {wanted.stored_name}", gateway.namespace.description
    members = (
        ("its name stays", known.name, wanted.name),
        ("its profile stays", gateway.settings.profile.name, wanted.profile),
        ("its host names stay", ", ".join(known.hostnames) or "none", ", ".join(wanted.hostnames) or "none"),
    )
    taken = [SettingOutcome(of, f"{what} {now}", said) for what, now, said in members if now != said]
    if wanted.is_default is not (gateway is gateway.process.default):
        default = gateway.process.default.settings.namespace
        taken += [SettingOutcome("the default namespace", f"stays {default}", wanted.name)] if wanted.is_default else []
    return [*taken, *await _change_key(gateway, wanted, of), *await _change_units(gateway, wanted, of)]


async def take_entities(gateway: Gateway, wanted: NamespaceConfig) -> list[SettingOutcome]:
    """Make and change what a Config.json names; what exists and is not named is left alone."""
    of = f"namespace {gateway.settings.namespace}"
    before = gateway.namespace.version
    try:
        await make_entities(gateway, wanted)
    except EmulatorFileError as error:
        return [SettingOutcome(of, f"not all of its Config.json could be made: {error}", is_wrong=True)]
    changes = gateway.namespace.version - before
    return [SettingOutcome(of, f"its Config.json was read again, {changes} changes of its catalog")] if changes else []


async def _change_key(gateway: Gateway, wanted: NamespaceSettings, of: str) -> list[SettingOutcome]:
    """Give the root rule the primary key that is said; its secondary key stays."""
    rules = gateway.namespace.description.rules
    known = next((rule for rule in rules if rule.name == ROOT_RULE), None)
    primary = "" if known is None else known.primary.reveal()
    if wanted.is_made_running or hmac.compare_digest(primary.encode(), wanted.key.encode()):
        return []

    def with_key(level: RuleLevel) -> Rules:
        secondary = next((rule.secondary for rule in level.rules if rule.name == ROOT_RULE), Secret(""))
        return level.set(AuthorizationRuleDescription(ROOT_RULE, Rights.ALL, Secret(wanted.key), secondary))

    what = f"the primary key of its rule {ROOT_RULE}"
    try:
        await answer_of(partial(gateway.keeper.change_rules, None, with_key))
    except ServiceError as refusal:
        return [SettingOutcome(of, f"{what} stays as it was: {refusal.text}", is_wrong=True)]
    return [SettingOutcome(of, f"{what} became the one that is said; what the one before signed ends now")]


async def _change_units(gateway: Gateway, wanted: NamespaceSettings, of: str) -> list[SettingOutcome]:
    held, maximum, known = wanted.throughput_units, wanted.maximum_throughput_units, gateway.namespace.description.units
    if held in (None, known.asked) and maximum in (None, known.maximum):
        return []
    assert isinstance(gateway.units, NamespaceUnits), "who has the catalog's writer has all of the units"
    try:
        await answer_of(partial(gateway.units.ask, held, maximum))
    except ServiceError as refusal:
        return [SettingOutcome(of, f"its throughput units stay as they were: {refusal.text}", is_wrong=True)]
    now = gateway.namespace.description.units
    return [SettingOutcome(of, f"its throughput units became {now.held}, auto-inflate to {now.maximum or 'none'}")]
