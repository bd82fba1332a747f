"""Resources as ARM's JSON, and its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote, urlencode

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.http.exchange import Request, Response
from hubweir.namespace.error_text import timestamp

T = TypeVar("T")

JSON = "application/json; charset=utf-8"
PAGE_LIMIT = 100
QUERY_FIELDS = 32
_DIGITS = 6

Document = dict[str, Any]


def answer(document: Mapping[str, object] | None, status: int = 200) -> Response:
    body = b"" if document is None else json.dumps(document).encode()
    return Response(status, body, JSON, {"cache-control": "no-store"})


def resource(resource_id: str, kind: str, name: str, properties: Mapping[str, object], **more: object) -> Document:
    """kind: such as Microsoft.EventHub/Namespaces."""
    return {"id": resource_id, "name": name, "type": kind, **more, "properties": dict(properties)}


def time_of(time_ms: int) -> str:
    return f"{timestamp(time_ms)}Z"


def page(request: Request, items: Sequence[T], document: Callable[[T], Document]) -> Response:
    """A part of a list, by $skip and $top, with the address of the next one where more follows."""
    some, link = cut_page(request, items)
    return answer({"value": [document(each) for each in some]} | link)


def cut_page(request: Request, items: Sequence[T]) -> tuple[Sequence[T], Document]:
    """The part of a list that a request asks for, and the link to the next. ServiceError ARGUMENT_ERROR."""
    try:
        query = parse_qs(request.query, keep_blank_values=True, max_num_fields=QUERY_FIELDS)
    except ValueError:
        raise ServiceError(ARGUMENT_ERROR, f"The query has more than {QUERY_FIELDS} fields.") from None
    skip, top = _count(query, "$skip", 0), min(_count(query, "$top", PAGE_LIMIT), PAGE_LIMIT)
    if not top:  # the next page would be the same one, for ever
        raise ServiceError(ARGUMENT_ERROR, f"$top must be from 1 to {PAGE_LIMIT}; what is over that is cut.")
    if skip + top >= len(items):
        return items[skip:], {}
    path = "/".join(quote(segment, safe="") for segment in request.segments)
    others = [(name, value) for name, values in query.items() if name not in ("$skip", "$top") for value in values]
    link = f"{request.base_uri}/{path}?{urlencode([*others, ('$skip', skip + top), ('$top', top)])}"
    return items[skip : skip + top], {"nextLink": link}


def _count(query: Mapping[str, list[str]], name: str, default: int) -> int:
    text = query.get(name, [""])[0]
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS:
        raise ServiceError(ARGUMENT_ERROR, f"{name} must be a number of at most {_DIGITS} digits.")
    return int(text)
