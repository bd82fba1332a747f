"""Which SASL mechanisms there are, and what an initial response holds (part 5, section 5.3.3; RFC 4616, 4505).

The order is the one in which Azure's service offers them; clients choose by name. ANONYMOUS and MSSBCBS mean that
rights come later, by tokens put on `$cbs`; MSSBCBS is the name under which one client asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from hubweir.errors import DecodeError

MSSBCBS, PLAIN, ANONYMOUS, EXTERNAL = "MSSBCBS", "PLAIN", "ANONYMOUS", "EXTERNAL"
OFFERED = (MSSBCBS, PLAIN, ANONYMOUS, EXTERNAL)


@dataclass(frozen=True, slots=True)
class PlainResponse:
    """What a PLAIN response says. authorization_id: on whose behalf, "" for oneself."""

    authorization_id: str
    user: str
    password: str

    def __repr__(self) -> str:
        return f"PlainResponse({self.authorization_id!r}, {self.user!r}, …)"


def encode_plain(user: str, password: str) -> bytes:
    """The initial response of PLAIN: three texts separated by NUL, the first one empty."""
    return b"\0" + user.encode() + b"\0" + password.encode()


def decode_plain(response: bytes) -> PlainResponse:
    """What a PLAIN response holds; DecodeError when it is not three UTF-8 texts separated by NUL."""
    parts = response.split(b"\0")
    if len(parts) != 3:
        raise DecodeError("a PLAIN response holds three texts separated by NUL")
    try:
        return PlainResponse(*(part.decode() for part in parts))
    except UnicodeDecodeError:
        raise DecodeError("a PLAIN response holds bytes that are not UTF-8") from None
