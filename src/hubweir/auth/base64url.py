"""The JSON and the base64url of tokens, read strictly: one text for one value, nothing twice. (Rules R22, R25)

Stock readers take the last of two members with one name, junk inside base64 and spare bits at its end, so that two
texts are one token, or one text two. Here each is refused.
"""

from __future__ import annotations

import base64
import json

from hubweir.errors import HubweirError

# A token's claims are an object of scalars and flat lists; the parser's own stack needs no more.
BRACKETS = 512
_NUMBER_LENGTH = 24
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class IllegalJson(HubweirError):
    """The text is not what it must be; why, for people."""


def base64url(text: str) -> bytes:
    """The bytes of a base64url text without padding, when it is the one text that they have. Raises IllegalJson."""
    if len(text) % 4 == 1 or not _ALPHABET.issuperset(text):
        raise IllegalJson("it is no base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != text:
        raise IllegalJson("its base64url has spare bits")
    return data


def read_object(data: bytes) -> dict[str, object]:
    """The one JSON object that data is. Raises IllegalJson; the text tells nothing of what data holds."""
    if data.count(b"[") + data.count(b"{") > BRACKETS:
        raise IllegalJson(f"it has more than {BRACKETS} brackets")
    try:
        value: object = json.loads(
            data.decode(), object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
        )
        # A lone half of a surrogate pair is legal for the parser, and no character.
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeError, json.JSONDecodeError):
        raise IllegalJson("it is no JSON") from None
    if not isinstance(value, dict):
        raise IllegalJson("it is no JSON object")
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise IllegalJson("an object has one name twice")
    return members


def _integer(text: str) -> int:
    if len(text) > _NUMBER_LENGTH:
        raise IllegalJson("a number is too long")
    return int(text)


def _float(text: str) -> float:
    if len(text) > _NUMBER_LENGTH:
        raise IllegalJson("a number is too long")
    return float(text)


def _constant(text: str) -> float:
    raise IllegalJson("it has a number that is none")
