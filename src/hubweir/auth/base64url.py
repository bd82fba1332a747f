"""The base64url of tokens, read strictly: one text for some bytes, and no other. (Rule R22; RFC 7515, appendix C)

The stock reader takes junk inside and spare bits at the end, so that several texts are one token.
"""

from __future__ import annotations

import base64

from hubweir.errors import HubweirError

_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class IllegalBase64(HubweirError):
    """The text is not the one that any bytes have; why, for people."""


def base64url(text: str) -> bytes:
    """The bytes of a base64url text without padding, when it is the one text that they have. Raises IllegalBase64."""
    if len(text) % 4 == 1 or not _ALPHABET.issuperset(text):
        raise IllegalBase64("it is no base64url")
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii") != text:
        raise IllegalBase64("its base64url has spare bits")
    return data
