"""The fields that a form sent: by name, each once. Read strictly, since anybody may send anything."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.gateway.byte_budget import ProcessBudget
from hubweir.gateway.http.exchange import Request, Room
from hubweir.gateway.http.problem import HttpRefusal

TYPE = "application/x-www-form-urlencoded"
FORM_BYTES = 64 * 1024
FIELD_COUNT = 96
Form = Mapping[str, str]


async def read_form(request: Request, budget: ProcessBudget, limit: int = FORM_BYTES) -> Form:
    """The fields of a request's body. HttpRefusal 413 or 415, ServiceError ARGUMENT_ERROR: it is no form of ours."""
    media_type = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    if media_type != TYPE:
        raise HttpRefusal(415, f"A form comes as {TYPE}.")
    room = Room(budget)
    await room.take(request.body_size(limit, "The form"))
    try:
        data = await request.body(limit, "The form")
    finally:
        room.give_back()
    return form_fields(data)


def read_query(request: Request) -> Form:
    """The fields of a request's query. ServiceError ARGUMENT_ERROR as read_form."""
    return form_fields(request.query.encode("latin-1"))


def form_fields(data: bytes) -> Form:
    """The fields of a text in the form's encoding. ServiceError ARGUMENT_ERROR as read_form."""
    try:
        pairs = parse_qsl(
            data.decode("ascii"), keep_blank_values=True, max_num_fields=FIELD_COUNT, errors="strict", encoding="utf-8"
        )
    except ValueError:  # not ASCII, not UTF-8 behind its escapes, or too many fields
        raise ServiceError(ARGUMENT_ERROR, "The form cannot be read: its fields are no UTF-8, or too many.") from None
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ServiceError(ARGUMENT_ERROR, "The form cannot be read: a field is there twice.")
    return fields
