"""AMQP values as JSON has them, for whoever prints what a message holds.

| AMQP                                          | here                                             |
|-----------------------------------------------|--------------------------------------------------|
| null, boolean, integers, string, symbol, char | as they are                                      |
| double, float                                 | as they are; what is no number is a text (`nan`) |
| timestamp                                     | milliseconds since 1970                          |
| uuid                                          | a text                                           |
| binary, decimals                              | base64 of the bytes                              |
| list, array                                   | a list                                           |
| map                                           | an object; keys become texts                     |
| described                                     | the value alone                                  |
"""

from __future__ import annotations

import base64
from math import isfinite

from hubweir.amqp.types.values import Array, Described


def plain_value(value: object) -> object:
    """See the module's table."""
    match value:
        case Described():
            return plain_value(value.value)
        case Array():
            return [plain_value(each) for each in value.items]
        case list() | tuple():
            return [plain_value(each) for each in value]
        case dict():
            return {_key(key): plain_value(each) for key, each in value.items()}
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case float():
            return value if isfinite(value) else str(float(value))
        case None | bool() | int() | str():
            return value
    return str(value)


def _key(key: object) -> str:
    plain = plain_value(key)
    return plain if isinstance(plain, str) else str(plain)
