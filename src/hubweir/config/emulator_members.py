"""Members that several kinds of entity share: names, authorization rules, host names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from hubweir.config.emulator_entities import AuthorizationRuleConfig
from hubweir.config.json_fields import Fields
from hubweir.config.problems import Kind, Location, quoted
from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError
from hubweir.namespace.names import check_rule_name, is_host_name
from hubweir.namespace.resource_path import fold
from hubweir.namespace.rights import Rights, parse_rights
from hubweir.namespace.rule_description import RULES_PER_LEVEL_LIMIT
from hubweir.namespace.secret import KEY_LIMIT, Secret

ENTITY_NAME_LIMIT = 260  # of queues and topics; Service Bus quotas
SHORT_NAME_LIMIT = 50  # of subscriptions and their rules
USER_METADATA_LIMIT = 1_024
ENTITY_NAME = "letters, digits and - . _ / ~ inside; a letter or digit at both ends"
_OFFICIAL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?")
_ENTITY_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./~-]*[A-Za-z0-9])?")


@dataclass(slots=True)
class UniqueNames:
    """The names of one kind of entity in one place. kind: as texts say it, such as `event hub`."""

    kind: str
    _places: dict[str, Location] = field(default_factory=dict)

    def take_name(self, name: str, fields: Fields, member: str = "Name") -> bool:
        """True when nobody had the name, in any case; else the second one is noted."""
        first = self._places.get(fold(name))
        if first is None:
            self._places[fold(name)] = fields.place(member)
            return True
        found = f"{quoted(name)} again; it stands at {first.file}:{first.line} already"
        fields.bad(member, f"two of one kind have one name: {self.kind}", kind=Kind.DUPLICATE_NAME, found=found)
        return False


def official_name(name: str) -> str:
    """The name, when the official emulators take it. Raises ServiceError, as the checks of namespace/names.py do."""
    if _OFFICIAL_NAME.fullmatch(name) is None:
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, "the official emulator does not take this name")
    return name


def official_and(check: Callable[[str], str], *, official: bool) -> Callable[[str], str]:
    """The check, and before it official_name when the file is for the official emulators."""
    return (lambda name: check(official_name(name))) if official else check


def entity_name(limit: int) -> Callable[[str], str]:
    """A check of the name of a queue, a topic, a subscription or a rule of one."""

    def check(name: str) -> str:
        if not 1 <= len(name) <= limit:
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"a name has 1 to {limit} characters, this one {len(name)}")
        if _ENTITY_NAME.fullmatch(name) is None:
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, "this is no legal name")
        return name

    return check


def read_user_metadata(fields: Fields) -> str | None:
    """The member UserMetadata of any entity."""
    allowed = f"a text of at most {USER_METADATA_LIMIT} characters"
    return fields.bounded_text("UserMetadata", most=USER_METADATA_LIMIT, allowed=allowed)


def read_authorization_rules(fields: Fields) -> tuple[AuthorizationRuleConfig, ...]:
    """The member AuthorizationRules of a namespace or an entity."""
    names = UniqueNames("authorization rule")
    rules = []
    for rule in fields.objects("AuthorizationRules", most=RULES_PER_LEVEL_LIMIT):
        name = rule.text("KeyName", required=True, check=check_rule_name, allowed="1 to 256 printable ASCII characters")
        if name is not None and names.take_name(name, rule, "KeyName"):
            rules.append(
                AuthorizationRuleConfig(
                    name=name,
                    rights=_read_rights(rule),
                    primary=_read_key(rule, "PrimaryKey"),
                    secondary=_read_key(rule, "SecondaryKey"),
                    location=rule.place("KeyName"),
                )
            )
        else:
            _read_rights(rule)
            rule.ignore("PrimaryKey", "SecondaryKey")
        rule.finish()
    return tuple(rules)


def _read_key(rule: Fields, name: str) -> Secret | None:
    text = rule.secret_text(name, least=1, most=KEY_LIMIT, allowed=f"a key of 1 to {KEY_LIMIT} characters")
    return None if text is None else Secret(text)


def _read_rights(rule: Fields) -> Rights:
    allowed = '"Send", "Listen"; or "Manage" with both'
    names = []
    for name, node, steps in rule.texts("Rights", required=True, allowed=allowed):
        if name.lower() in ("send", "listen", "manage"):
            names.append(name)
        else:
            rule.file.error(Kind.BAD_VALUE, node.at, steps, "this is no right", found=quoted(name), allowed=allowed)
    given = rule.member("Rights")
    if given is None or not isinstance(given.value, list) or len(given.value) != len(names):
        return Rights.NONE  # noted by now
    try:
        return parse_rights(names)
    except ServiceError as error:
        rule.wrong("Rights", error.text.rstrip("."), kind=Kind.BAD_VALUE, allowed=allowed)
    return Rights.NONE


def read_hostnames(fields: Fields, taken: dict[str, Location]) -> tuple[str, ...]:
    """The member Hostnames, in lower case. taken: the host names of all namespaces so far; grows."""
    names = []
    allowed = "a host name without port, such as hubs.example"
    for name, node, steps in fields.texts("Hostnames", allowed=allowed):
        host = name.lower()
        if not is_host_name(host):
            what = "this is no host name"
            fields.file.error(Kind.BAD_VALUE, node.at, steps, what, found=quoted(name), allowed=allowed)
            continue
        first = taken.get(host)
        if first is None:
            taken[host] = fields.file.location(node.at, steps)
            names.append(host)
        else:
            found = f"{quoted(name)} again; it stands at {first.file}:{first.line} already"
            what = "a host name leads to one namespace"
            fields.file.error(Kind.DUPLICATE_NAME, node.at, steps, what, found=found)
    return tuple(names)
