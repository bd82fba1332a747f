"""User properties of a message as headers, and the dates that headers have (RFC 9110 section 5.6.7).

| header           | property |
|------------------|----------|
| `"…"`            | the string that this JSON text says; the text as it is when it is none |
| a JSON number    | long, or double where it has a fraction or an exponent |
| `true`, `false`  | boolean |
| an RFC 1123 date | timestamp |
| anything else    | string |

What is received is written the same way, so that it can be sent again. A property that no header can be is left out:
a name that is no token of HTTP, or a name that is a header with a meaning of its own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from hubweir.amqp.types.values import Timestamp
from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.custom_properties import is_of_http, quoted_text
from hubweir.namespace.strict_json import IllegalJson, read_json

_DATE = "%a, %d %b %Y %H:%M:%S GMT"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# What an answer says of itself; a property of such a name would be read as that.
_OF_ANSWERS = frozenset(("allow", "location", "retry-after", "server", "set-cookie", "www-authenticate"))


def property_of(text: str) -> object:
    """The property that a header's value says. Raises ServiceError ARGUMENT_ERROR for a number that fits nowhere."""
    if text.startswith('"'):
        return quoted_text(text)
    if text in ("true", "false"):
        return text == "true"
    if _NUMBER.fullmatch(text):
        try:
            return read_json(text.encode())
        except IllegalJson as error:
            raise ServiceError(ARGUMENT_ERROR, f"A property is a number that cannot be sent: {error}.") from None
    time_ms = date_ms(text)
    return text if time_ms is None else Timestamp(time_ms)


def property_headers(properties: Mapping[str, object], taken: Iterable[str]) -> dict[str, str]:
    """The headers of a message's user properties. taken: names, in lower case, that the answer has already."""
    used, headers = set(taken), dict[str, str]()
    for name, value in properties.items():
        lower = name.lower()
        if lower in used or lower in _OF_ANSWERS or not _TOKEN.fullmatch(name) or is_of_http(lower.encode()):
            continue
        used.add(lower)
        headers[name] = header_of(value)
    return headers


def header_of(value: object) -> str:
    """A property as the value of a header: printable ASCII, whatever the property holds."""
    if isinstance(value, Timestamp):
        return date_text(value) or str(int(value))
    if isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return json.dumps(value)
    if value is None:
        return "null"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, bytes):
        return _quoted(value.decode("latin-1"))
    return _quoted(str(value))


def _quoted(text: str) -> str:
    """The text as JSON, which leaves one control character as it is."""
    return json.dumps(text).replace("\x7f", "\\u007f")


def date_text(time_ms: int) -> str | None:
    """`Mon, 23 Nov 2026 02:00:00 GMT`; None for a time that no calendar has."""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
        return time.strftime(_DATE.replace("%Y", f"{time.year:04d}"))  # which not every strftime writes with zeros
    except OverflowError:
        return None


def date_ms(text: str) -> int | None:
    """The time that an RFC 1123 date says; None when the text is none."""
    try:
        time = datetime.strptime(text, _DATE).replace(tzinfo=UTC)
    except ValueError:
        return None
    return (time - _EPOCH) // timedelta(milliseconds=1)
