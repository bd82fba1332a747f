"""Addresses of the portal's pages: `/portal/PAGE/NAME`, where the name of an entity may have slashes."""

from __future__ import annotations

from urllib.parse import quote, unquote, urlencode

ROOT = "portal"
HOME = f"/{ROOT}"


def path_to(page: str, name: str = "", /, **query: object) -> str:
    """The address of a page, of an entity if it has one. query: what is None or empty is left out."""
    path = "/".join((HOME, page, quote(name, safe="/$"))) if name else f"{HOME}/{page}" if page else HOME
    asked = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(asked)}" if asked else path


def is_own_path(path: str) -> bool:
    """Whether a path from outside leads to a page of the portal, and to no other site, nor to another page of this one
    by dots, which browsers take away before they ask.
    """
    is_plain = path.isascii() and path.isprintable() and "\\" not in path and "//" not in path
    has_dots = any(unquote(segment) in (".", "..") for segment in path.partition("?")[0].split("/"))
    return is_plain and not has_dots and (path == HOME or path.startswith((f"{HOME}/", f"{HOME}?")))
