"""The three rights of a rule: Send, Listen, Manage. Manage contains the other two. (Shared access authorization)"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Flag

from hubweir.errors import ARGUMENT_OUT_OF_RANGE, ServiceError


class Rights(Flag):
    """What a key may be used for. Kept in the catalog by value: never change a number."""

    NONE = 0
    SEND = 1
    LISTEN = 2
    MANAGE = 4
    ALL = 7


_BY_NAME = {"send": Rights.SEND, "listen": Rights.LISTEN, "manage": Rights.MANAGE}


def parse_rights(names: Iterable[str]) -> Rights:
    """Rights by their names, any case. Raises ServiceError for an unknown name, or Manage without the other two."""
    rights = Rights.NONE
    for name in names:
        right = _BY_NAME.get(name.lower())
        if right is None:
            raise ServiceError(ARGUMENT_OUT_OF_RANGE, f"{name[:64]!r} is no right; use Send, Listen, Manage.")
        rights |= right
    return check_rights(rights)


def check_rights(rights: Rights) -> Rights:
    """The rights, when a rule may have them: at least one, and Manage only together with Send and Listen."""
    if not rights:
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, "A rule needs at least one right: Send, Listen or Manage.")
    if Rights.MANAGE in rights and rights != Rights.ALL:
        raise ServiceError(ARGUMENT_OUT_OF_RANGE, "A rule with Manage must have Send and Listen too.")
    return rights


def right_name(right: Rights) -> str:
    """How a single right is written in texts: `Send`, `Listen`, `Manage`."""
    return (right.name or "").capitalize()
