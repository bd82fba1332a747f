"""JSON that came in a request: what is wrong with it is told as the refusal of that request."""

from __future__ import annotations

from hubweir.errors import ARGUMENT_ERROR, ServiceError
from hubweir.namespace.strict_json import IllegalJson, read_json


def body_json(data: bytes, what: str) -> object:
    """The value of a JSON document; ServiceError ARGUMENT_ERROR says what is wrong. what: names it in texts."""
    try:
        return read_json(data)
    except IllegalJson as error:
        raise refused(what, str(error)) from None


def refused(what: str, why: str) -> ServiceError:
    """The refusal of a part of a request."""
    return ServiceError(ARGUMENT_ERROR, f"{what} is not what it must be: {why}.")
