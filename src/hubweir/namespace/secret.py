"""Secret: a key that does not leak by accident. It is not comparable, printable or picklable (rule R22).

Whoever needs the bytes calls `reveal`, so that every use of a key can be found by that name. Signatures are compared
by hmac.compare_digest in auth/, never by this class.
"""

from __future__ import annotations

from typing import NoReturn

KEY_LIMIT = 256


class Secret:
    """The text of a key; its UTF-8 bytes are what signs. Empty: there is no such key, and it verifies nothing."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The key itself. Do not put it in a log, an error or a metric."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("secrets are not compared with ==; auth.verify compares signatures in constant time")

    def __hash__(self) -> NoReturn:
        raise TypeError("secrets are not hashable")

    def __repr__(self) -> NoReturn:
        raise TypeError("secrets are not printed; call reveal() where the key itself is meant")

    def __str__(self) -> NoReturn:
        raise TypeError("secrets are not printed; call reveal() where the key itself is meant")

    def __reduce__(self) -> NoReturn:
        raise TypeError("secrets are not pickled or copied")
