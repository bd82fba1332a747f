"""The common parts of requests on entities: the body of a PUT, its condition, pages of lists, addresses of entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import parse_qs, quote

from hubweir.errors import ARGUMENT_ERROR, PRECONDITION_FAILED, ServiceError
from hubweir.gateway.http.atom import AtomEntry, entry_response, feed_response
from hubweir.gateway.http.exchange import Request, Response, Room
from hubweir.gateway.http.strict_xml import XML_BYTES

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

T = TypeVar("T")

PAGE_LIMIT = 100
_PAGE_DIGITS = 6
API_VERSION = "api-version"
# The first version that knows partitioned entities.
PARTITIONING_VERSION = "2013-10"


@dataclass(frozen=True, slots=True)
class EntityPage(Generic[T]):
    """The part of a list that a request asks for. next_uri: of the part behind it; None: there is none."""

    items: Sequence[T]
    next_uri: str | None


def is_change(request: Request) -> bool:
    """Whether a PUT is an update. There are no entity tags, so `*` is the only condition that can hold."""
    condition = request.header(b"if-match")
    if condition is not None and condition.strip() != "*":
        raise ServiceError(PRECONDITION_FAILED, "Entities have no tags here: update with 'If-Match: *'.")
    return condition is not None


async def read_body(gateway: Gateway, request: Request) -> bytes:
    """The body of a PUT; it may be empty. Raises ServiceError, HttpRefusal."""
    room = Room(gateway.process.budget)
    await room.take(request.body_size(XML_BYTES, "The description"))
    try:
        return await request.body(XML_BYTES, "The description")
    finally:
        room.give_back()


def page_of(request: Request, items: Sequence[T]) -> EntityPage[T]:
    """The part of a list that $skip and $top name: from the start, and at most PAGE_LIMIT, when they do not."""
    query = _query(request)
    skip = _count(query, "$skip", 0)
    top = min(PAGE_LIMIT, _count(query, "$top", PAGE_LIMIT))
    found, after = items[skip : skip + top], skip + top
    if not top or after >= len(items):
        return EntityPage(found, None)
    more = f"$skip={after}&$top={top}"
    return EntityPage(found, f"{uri_of(request, *request.segments)}?{more}{_version(request, '&')}")


def api_version(request: Request) -> str:
    """The version that a request asks for, such as `2021-05`; "" when it does not say."""
    return _query(request).get(API_VERSION, [""])[0]


def knows_partitioning(request: Request) -> bool:
    """Whether the version that a request asks for has EnablePartitioning; one that does not say has."""
    version = api_version(request)
    return not version or version >= PARTITIONING_VERSION


def uri_of(request: Request, *path: str) -> str:
    """The address of a resource, as the request reached this service. path: names, which may have slashes."""
    return "/".join((request.base_uri, *(quote(part, safe="/$") for part in path)))


def entry_uri(request: Request, *path: str) -> str:
    """The address of an entry, with the version that was asked for, as the service tells it."""
    return uri_of(request, *path) + _version(request, "?")


def feed(
    gateway: Gateway, request: Request, title: str, entries: Sequence[AtomEntry], next_uri: str | None
) -> Response:
    """The answer that holds a page of a list."""
    uri, now_ms = entry_uri(request, *request.segments), gateway.env.now_ms()
    author = gateway.settings.namespace
    return feed_response(uri, title, entries, author=author, now_ms=now_ms, next_uri=next_uri)


def entry(gateway: Gateway, of: AtomEntry, status: int = 200) -> Response:
    """The answer that holds one entry."""
    return entry_response(of, author=gateway.settings.namespace, status=status)


def _version(request: Request, separator: str) -> str:
    version = api_version(request)
    return f"{separator}{API_VERSION}={quote(version)}" if version else ""


def _query(request: Request) -> dict[str, list[str]]:
    return parse_qs(request.query, keep_blank_values=True, max_num_fields=32)


def _count(query: dict[str, list[str]], name: str, default: int) -> int:
    values = query.get(name)
    if values is None:
        return default
    text = values[0]
    if len(values) > 1 or not (text.isascii() and text.isdigit()) or len(text) > _PAGE_DIGITS:
        raise ServiceError(ARGUMENT_ERROR, f"{name} must be one number of at most {_PAGE_DIGITS} digits.")
    return int(text)
