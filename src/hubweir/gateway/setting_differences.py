"""Lists which settings of two descriptions differ, in people's words: `retention 1 hour → 2 hours`.

A setting's words are its name in the code, with spaces, and without the unit at its end: the value has it. _WORDS has
those that would say something else so. What people wrote for themselves, and keys, are not told: _NAMED_ONLY.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from enum import Enum

import msgspec

from hubweir.namespace.entity import Availability
from hubweir.namespace.iso_duration import SECOND_MS, WrittenDuration
from hubweir.namespace.tiers import time_text

# Rules have keys, and what people wrote for themselves may be anything.
_NAMED_ONLY = {
    "rules": "authorization rules",
    "user_metadata": "user metadata",
    "tags": "tags",
    "group_details": "what is kept about its consumer groups",
}
_NO_SETTINGS = ("name", "created_at_ms", "changed_at_ms", "first_rule")  # nobody changes them
_WORDS = {
    "availability": "status",
    "held": "throughput units",
    "maximum": "auto-inflate up to",
    "inflated": "units that auto-inflate added",
    "default_rank": "rank among the default namespaces",
    "enabled": "switched on",
}
# Groups of settings whose members say nothing without the group's name.
_GROUPS = ("capture",)
_UNITS: dict[str, Callable[[int], str]] = {
    "_ms": time_text,
    "_s": lambda seconds: time_text(seconds * SECOND_MS),
    "_bytes": lambda count: f"{count} bytes",
    "_megabytes": lambda count: f"{count} MB",
    "_kilobytes": lambda count: f"{count} KB",
}


def differences(before: object, after: object) -> str:
    """What differs between two descriptions of one type, for the log; "" when nothing does. No key is in it.

    Of settings that are a group, those in it are told; where there is no group, its defaults.
    """
    told = []
    for name in _names(after):
        old, new = getattr(before, name), getattr(after, name)
        # Rules have keys, which refuse to be compared: who changes them makes others.
        if name in _NO_SETTINGS or old is new or (name != "rules" and old == new):
            continue
        if name in _NAMED_ONLY:
            told.append(_NAMED_ONLY[name])
        elif group := _names(old) and type(old) or _names(new) and type(new):
            inside = differences(old or group(), new or group()) or "set"
            told.append(f"{name}: {inside}" if name in _GROUPS else inside)
        else:
            told.append(f"{_words(name)} {_text(name, old)} → {_text(name, new)}")
    return ", ".join(told)


def _words(name: str) -> str:
    return _WORDS.get(name) or name.removesuffix(_unit(name)).removeprefix("is_").replace("_", " ")


def _unit(name: str) -> str:
    """The unit at the end of a setting's name; "": it has none."""
    return next((unit for unit in _UNITS if name.endswith(unit)), "")


def _text(name: str, value: object) -> str:
    """A value of a setting, for people."""
    match value:
        case None | "" | ():
            return "none"
        case bool():
            return "yes" if value else "no"
        case Availability():
            return value.text
        case Enum():
            return value.value if isinstance(value.value, str) else value.name.lower()
        case WrittenDuration():
            return "unlimited" if value.is_unlimited else time_text(value.ms)
        case int():
            unit = _unit(name)
            return _UNITS[unit](value) if unit else str(value)
        case tuple():
            return ", ".join(map(str, value))
    return repr(value)


def _names(description: object) -> tuple[str, ...]:
    """Of its settings; none when it is a plain value."""
    if isinstance(description, msgspec.Struct):
        return description.__struct_fields__
    if isinstance(description, type | WrittenDuration) or not dataclasses.is_dataclass(description):
        return ()
    return tuple(field.name for field in dataclasses.fields(description))
