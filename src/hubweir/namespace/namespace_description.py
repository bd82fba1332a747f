"""Description of the namespace itself: its names, whose quotas it has, its rules, and its throughput units."""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.namespace.rule_description import AuthorizationRuleDescription


@dataclass(frozen=True, slots=True)
class UnitsDescription:
    """The throughput units of a namespace. held: 0 is off. maximum: how far auto-inflate may go; 0: there is none.

    inflated: how many of those held auto-inflate added to what somebody asked for.
    """

    held: int = 0
    maximum: int = 0
    inflated: int = 0

    @property
    def asked(self) -> int:
        """The units that a start or an operator asked for last."""
        return self.held - self.inflated


@dataclass(frozen=True, slots=True)
class NamespaceDescription:
    """The namespace itself: its name, the rules that hold for all of its entities, and the units they share.

    hostnames: that lead to it, besides those that its name makes. profile: whose quotas hold (tiers.py); "": nobody
    said yet. default_rank: of the namespaces of one data folder the one with the highest is the default one.
    is_made_running: it was made while the service ran, so its key and profile are its own: a start that does not name
    it changes nothing of it. is_deleting: it is not served any more, and all that it has goes. location, tags: as Azure
    Resource Manager was told them; nothing here goes by them. location "": none was told. changed_at_ms: of the newest
    change of the namespace itself, in ms since 1970; 0: it never was changed.
    """

    name: str
    rules: tuple[AuthorizationRuleDescription, ...] = ()
    created_at_ms: int = 0
    units: UnitsDescription = UnitsDescription()
    hostnames: tuple[str, ...] = ()
    profile: str = ""
    default_rank: int = 0
    is_made_running: bool = False
    is_deleting: bool = False
    location: str = ""
    tags: tuple[tuple[str, str], ...] = ()
    changed_at_ms: int = 0

    @property
    def updated_at_ms(self) -> int:
        """When it was changed, or else made."""
        return self.changed_at_ms or self.created_at_ms
