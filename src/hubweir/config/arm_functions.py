"""Functions that expressions of Azure Resource Manager's templates call, by their names in lower case.

What would silently mean something else than in Azure is refused: a text where a number is needed, a condition that is
neither true nor false, a format of a number. `uniqueString` alone has other values here. (Template functions)
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from hubweir.errors import HubweirError

# What Azure allows a range.
RANGE_LIMIT = 10_000


class BadExpression(HubweirError):
    """An expression that cannot be evaluated: which, and what is wrong with it."""


def truth(value: Any) -> bool:
    """A condition's value: true or false, also as a text. Raises BadExpression for anything else."""
    said = str(value).lower()
    if not isinstance(value, bool | str) or said not in ("true", "false"):
        raise BadExpression(f"{kind_of(value)} is neither true nor false")
    return said == "true"


def kind_of(value: Any) -> str:
    """What a refusal says of a value: a number, or what it is. It may be a key, or made of one, so it is not quoted."""
    match value:
        case None | bool() | int() | float():
            return json.dumps(value)
        case str():
            return f"a text of {len(value)} characters"
        case list():
            return f"a list of {len(value)}"
    return "an object"


def _step(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        found = {str(name).lower(): inside for name, inside in value.items()}
        if str(key).lower() not in found:
            raise BadExpression("the object has no such member")
        return found[str(key).lower()]
    if not isinstance(value, list) or _whole(key) < 0:
        raise BadExpression("a name leads into an object, a number from 0 into a list")
    return value[key]


def _concat(*parts: Any) -> Any:
    if parts and isinstance(parts[0], list):
        return [each for part in parts for each in part]
    return "".join(map(_text, parts))


def _format(form: str, *values: Any) -> str:
    def filled(found: re.Match[str]) -> str:
        if found[1] is None:
            return found[0][0]  # a brace that stands twice is one
        if found[2]:
            raise BadExpression(f"the format {found[2]!r} of a value is not done here")
        return _text(values[int(found[1])])

    return re.sub(r"\{\{|\}\}|\{(\d+)(:[^}]*)?\}", filled, form)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "True" if value else "False"
    if isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return str(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadExpression("a whole number is needed")
    return value


def _quotient(a: Any, b: Any) -> int:
    """Cut towards zero, as Azure has it."""
    size = abs(_whole(a)) // abs(_whole(b))
    return size if (a < 0) == (b < 0) else -size


def _equals(a: Any, b: Any) -> bool:
    return isinstance(a, bool) is isinstance(b, bool) and bool(a == b)


def _contains(value: Any, item: Any) -> bool:
    if isinstance(value, dict):
        return str(item).lower() in {str(name).lower() for name in value}
    return item in value


def _range(start: Any, count: Any) -> list[int]:
    if not 0 <= _whole(count) <= RANGE_LIMIT:
        raise BadExpression(f"a range has 0 to {RANGE_LIMIT} numbers")
    return list(range(_whole(start), start + count))


def _substring(text: str, start: Any, length: Any = None) -> str:
    end = len(text) if length is None else _whole(start) + _whole(length)
    if not 0 <= _whole(start) <= end <= len(text):
        raise BadExpression("it would begin or end outside of the text")
    return text[start:end]


def _union(*values: Any) -> Any:
    """Lists, each element once; or objects, the later over the earlier, with the objects in them."""
    if isinstance(values[0], list):
        found: list[Any] = []
        for each in (each for value in values for each in value):
            if each not in found:
                found.append(each)
        return found
    made: dict[str, Any] = {}
    for name, value in (pair for each in values for pair in each.items()):
        known = next((other for other in made if other.lower() == name.lower()), name)
        both = isinstance(made.get(known), dict) and isinstance(value, dict)
        made[known] = _union(made[known], value) if both else value
    return made


def _unique(*parts: Any) -> str:
    """Thirteen characters, always the same for the same parts; others than Azure would make of them."""
    return hashlib.sha256("/".join(map(_text, parts)).encode()).hexdigest()[:13]


def _resource_id(*parts: Any) -> str:
    """The type with the names behind it; subscription and group, which may stand before it, are left out."""
    at = next((place for place, part in enumerate(parts) if "/" in str(part)), 0)
    return "/".join(map(_text, parts[at:]))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    ".": _step,
    "add": lambda a, b: _whole(a) + _whole(b),
    "and": lambda *values: all([truth(value) for value in values]),
    "array": lambda value: value if isinstance(value, list) else [value],
    "bool": lambda value: bool(value) if value in (0, 1) else truth(value),
    "coalesce": lambda *values: next((value for value in values if value is not None), None),
    "concat": _concat,
    "contains": _contains,
    "createarray": lambda *values: list(values),
    "createobject": lambda *pairs: dict(zip(pairs[::2], pairs[1::2], strict=True)),
    "div": _quotient,
    "empty": lambda value: not value,
    "endswith": lambda text, end: text.lower().endswith(end.lower()),
    "equals": _equals,
    "false": lambda: False,
    "first": lambda value: value[0],
    "format": _format,
    "greater": lambda a, b: a > b,
    "greaterorequals": lambda a, b: a >= b,
    "indexof": lambda text, part: text.lower().find(part.lower()),
    "int": int,
    "join": lambda values, between: between.join(map(_text, values)),
    "last": lambda value: value[-1],
    "length": len,
    "less": lambda a, b: a < b,
    "lessorequals": lambda a, b: a <= b,
    "max": max,
    "min": min,
    "mod": lambda a, b: a - b * _quotient(a, b),
    "mul": lambda a, b: _whole(a) * _whole(b),
    "not": lambda value: not truth(value),
    "null": lambda: None,
    "or": lambda *values: any([truth(value) for value in values]),
    "range": _range,
    "replace": lambda text, old, new: text.replace(old, new),
    "resourceid": _resource_id,
    "skip": lambda value, count: value[max(0, _whole(count)) :],
    "split": lambda text, between: text.split(between),
    "startswith": lambda text, start: text.lower().startswith(start.lower()),
    "string": _text,
    "sub": lambda a, b: _whole(a) - _whole(b),
    "substring": _substring,
    "take": lambda value, count: value[: max(0, _whole(count))],
    "tolower": lambda text: text.lower(),
    "toupper": lambda text: text.upper(),
    "trim": lambda text: text.strip(),
    "true": lambda: True,
    "union": _union,
    "uniquestring": _unique,
}
