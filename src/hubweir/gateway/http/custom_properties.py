"""Reads the headers of a single send: custom properties of its event or message, and an event's partition key.

Every header that HTTP itself or the service has no use for becomes an application property under the name that the
peer wrote. Of an event, a value in quotation marks is read as JSON, and stays as it is when it is none; everything else
is text. What the values of a message are is property_headers.py. ("Send Event", REST reference of Event Hubs)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.body_json import body_json, refused

# Properties of one event or message: a safety limit. An AMQP map may have more entries than a head has headers.
PROPERTY_BYTES = 32 * 1024
PROPERTIES_BYTES = 64 * 1024
PROPERTY_COUNT = 4_096

BROKER_PROPERTIES = b"brokerproperties"
# What speaks about the request or its way, not about what it carries; and what only a proxy of ours might set.
_OF_HTTP = frozenset(
    (
        b"authorization", b"brokerproperties", b"cache-control", b"connection", b"content-encoding", b"content-length",
        b"content-type", b"cookie", b"date", b"expect", b"forwarded", b"host", b"keep-alive", b"origin", b"pragma",
        b"referer", b"te", b"trailer", b"transfer-encoding", b"upgrade", b"user-agent", b"via", b"x-ms-retrypolicy",
    )
)  # fmt: skip
_OF_HTTP_BY_PREFIX = (
    b"accept", b"proxy-", b"sec-", b"x-forwarded-", b"x-original-", b"x-rewrite-", b"x-http-method",
    b"x-method-override",
)  # fmt: skip


def is_of_http(name: bytes) -> bool:
    """Whether a header of this name, in lower case, is never a property."""
    return name in _OF_HTTP or name.startswith(_OF_HTTP_BY_PREFIX)


def quoted_text(text: str) -> object:
    """A value of an event's property: JSON when it stands in quotation marks and is JSON, else the text itself."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        value = json.loads(text)
        value.encode()
    except ValueError:  # no JSON after all, or half a character
        return text
    return value


def custom_properties(
    fields: Sequence[tuple[bytes, bytes]], read_value: Callable[[str], object] = quoted_text
) -> dict[str, object]:
    """The application properties of a single send. fields: name as it was spelt, and value.

    read_value: what a value says. Raises ServiceError ARGUMENT_ERROR for a name that comes twice, and for bytes that
    are no UTF-8.
    """
    properties: dict[str, object] = {}
    names: set[bytes] = set()
    for name, value in fields:
        lower = name.lower()
        if is_of_http(lower):
            continue
        if lower in names:
            raise ServiceError(ARGUMENT_ERROR, f"The header {name.decode('latin-1')!r} comes twice.")
        names.add(lower)
        try:
            properties[name.decode()] = read_value(value.decode())
        except UnicodeDecodeError:
            raise ServiceError(ARGUMENT_ERROR, f"The header {name.decode('latin-1')!r} is no UTF-8.") from None
    return properties


def partition_key(header: bytes | None) -> str | None:
    """The partition key of a BrokerProperties header; None when there is none. Raises ServiceError ARGUMENT_ERROR."""
    return None if header is None else partition_key_of(body_json(header, "BrokerProperties"))


def partition_key_of(broker_properties: object) -> str | None:
    """The partition key of broker properties, when they are an object. Their other members mean nothing here."""
    if broker_properties is None:
        return None
    if not isinstance(broker_properties, dict):
        raise refused("BrokerProperties", "it must be one JSON object")
    key = broker_properties.get("PartitionKey")
    if key is None or key == "":
        return None
    if not isinstance(key, str):
        raise refused("BrokerProperties", "PartitionKey must be a string")
    return key


def check_properties(properties: Mapping[str, object]) -> None:
    """Raise ServiceError ARGUMENT_ERROR when there are too many of them, or too large ones."""
    sizes = [len(name.encode()) + (len(value.encode()) if isinstance(value, str) else 9)
             for name, value in properties.items()]  # fmt: skip
    if len(sizes) > PROPERTY_COUNT or max(sizes, default=0) > PROPERTY_BYTES or sum(sizes) > PROPERTIES_BYTES:
        raise ServiceError(
            ARGUMENT_ERROR,
            f"An event or a message may have {PROPERTY_COUNT} properties, of {PROPERTY_BYTES} bytes each and "
            f"{PROPERTIES_BYTES} bytes together, names included. Put more into its body.",
        )
