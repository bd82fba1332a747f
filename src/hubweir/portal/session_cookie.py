"""The cookie that carries a session: set, read and emptied. One a port, so that services on one host do not mix.

A browser sends it to the portal alone, never along with a link or a form of another site, and shows it to no script.
Over TLS it never goes without.
"""

from __future__ import annotations

from collections.abc import Mapping

from hubweir.gateway.http.exchange import Request
from hubweir.portal.paths import HOME

_NAME = "hubweir-portal"
_COOKIES_LIMIT = 16 * 1024


def cookie_of(request: Request) -> str:
    """The value that a request brings; "" when it brings none, or several."""
    header = request.headers.get(b"cookie", b"")
    if len(header) > _COOKIES_LIMIT:
        return ""
    wanted = f"{_name(request)}=".encode()
    found = [piece.strip()[len(wanted) :] for piece in header.split(b";") if piece.strip().startswith(wanted)]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def cookie_headers(request: Request, value: str) -> Mapping[str, str]:
    """What sets it, until the browser is closed."""
    return {"set-cookie": f"{_name(request)}={value}; {_attributes(request)}"}


def no_cookie(request: Request) -> Mapping[str, str]:
    """What empties it."""
    return {"set-cookie": f"{_name(request)}=; Max-Age=0; {_attributes(request)}"}


def _attributes(request: Request) -> str:
    secure = "; Secure" if request.base_uri.startswith("https:") else ""
    return f"Path={HOME}; HttpOnly; SameSite=Strict{secure}"


def _name(request: Request) -> str:
    """Cookies of one host are those of all of its ports."""
    host = request.headers.get(b"host", b"").decode("latin-1")
    port = host.rpartition("]")[2].rpartition(":")[2] if ":" in host.rpartition("]")[2] else ""
    return f"{_NAME}-{port}" if port.isascii() and port.isdigit() else _NAME
