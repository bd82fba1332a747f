"""Files that pages ask for: style, scripts, pictures. They are in the package, and read once.

A page asks for them with a version in the query, so a browser may keep them for good; another version is another URL.
"""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path

from hubweir.gateway.http.exchange import Response

FOLDER = Path(__file__).with_name("static")
# What is served, and as what: nothing else of the folder is.
ASSETS = {
    "portal.css": "text/css; charset=utf-8",
    "portal.js": "text/javascript; charset=utf-8",
    "charts.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "uPlot.iife.min.js": "text/javascript; charset=utf-8",
    "uPlot.min.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_HEADERS = {"cache-control": "public, max-age=31536000, immutable", "x-content-type-options": "nosniff"}


def asset(name: str) -> Response | None:
    """The answer that holds a file; None: there is none of that name."""
    kind = ASSETS.get(name)
    return None if kind is None else Response(200, _content(name), kind, _HEADERS)


@cache
def version(name: str) -> str:
    """What tells this content of a file from any other."""
    return sha256(_content(name)).hexdigest()[:12]


@cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
