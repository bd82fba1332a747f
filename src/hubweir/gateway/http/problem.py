"""An error as an HTTP answer: status from the table of conditions, and the service's XML body.

<Error><Code>401</Code><Detail>InvalidSignature: …, TrackingId:…, SystemTracker:…, Timestamp:…</Detail></Error>

Of a request of management the text begins with a number that says more than the status: `SubCode=40103. Invalid…`.
Several conditions have one status, so a header of its own tells the condition's symbol; other clients pass over it.
"""

from __future__ import annotations

from hubweir.auth.refusal import RefusalKind
from hubweir.errors import (
    AUTH_FAILED,
    CONDITION_HEADER,
    SERVER_BUSY,
    STORE_OFFLINE,
    TIMED_OUT,
    HubweirError,
    ServiceError,
)
from hubweir.gateway.http.strict_xml import xml_text
from hubweir.namespace.error_text import printable

# Seconds that a client over a limit is asked to wait; the official clients' own back-off is as long.
BUSY_WAIT_S = 4
_DETAIL_LIMIT = 2_048


class HttpRefusal(HubweirError):
    """A refusal that only HTTP has: a method, a media type, a length."""

    def __init__(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers or {}


def status_of(error: ServiceError | HttpRefusal) -> int:
    return error.status if isinstance(error, HttpRefusal) else error.condition.http


def headers_of(error: ServiceError | HttpRefusal) -> dict[str, str]:
    """The headers that belong to an error: its condition, and what its status asks for."""
    if isinstance(error, HttpRefusal):
        return error.headers
    headers = {CONDITION_HEADER: error.condition.symbol}
    if error.condition.http == 401:
        headers["www-authenticate"] = "SharedAccessSignature"
    if error.condition is SERVER_BUSY:
        headers["retry-after"] = str(BUSY_WAIT_S)
    return headers


def sub_code(error: ServiceError) -> int:
    """The number that clients of management find in an error's text."""
    if error.condition is AUTH_FAILED:
        return _AUTH_SUB_CODES.get(error.text.partition(":")[0], 40100)
    return _SUB_CODES.get(error.condition, error.condition.http * 100)


def problem_xml(error: ServiceError | HttpRefusal, described: str) -> bytes:
    """The body of an error's answer. described: its text with its reference."""
    detail = printable(described, _DETAIL_LIMIT)
    return f"<Error><Code>{status_of(error)}</Code><Detail>{xml_text(detail)}</Detail></Error>".encode()


# Where it is not the status with two noughts behind it. Of a token by the first word of its refusal.
_SUB_CODES = {SERVER_BUSY: 50004, STORE_OFFLINE: 50004, TIMED_OUT: 50004}
_AUTH_SUB_CODES = {
    "MissingToken": 40102,
    RefusalKind.INVALID_SIGNATURE.value: 40103,
    RefusalKind.INVALID_AUDIENCE.value: 40104,
    RefusalKind.MALFORMED.value: 40105,
    RefusalKind.EXPIRED.value: 40106,
}
