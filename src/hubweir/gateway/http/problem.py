"""An error as an HTTP answer: status from the table of conditions, and the service's XML body.

<Error><Code>401</Code><Detail>InvalidSignature: …, TrackingId:…, SystemTracker:…, Timestamp:…</Detail></Error>
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from hubweir.errors import SERVER_BUSY, HubweirError, ServiceError
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
    """The headers that belong to an error's status."""
    if isinstance(error, HttpRefusal):
        return error.headers
    if error.condition.http == 401:
        return {"www-authenticate": "SharedAccessSignature"}
    return {"retry-after": str(BUSY_WAIT_S)} if error.condition is SERVER_BUSY else {}


def problem_xml(error: ServiceError | HttpRefusal, described: str) -> bytes:
    """The body of an error's answer. described: its text with its reference."""
    detail = printable(described, _DETAIL_LIMIT)
    return f"<Error><Code>{status_of(error)}</Code><Detail>{escape(detail)}</Detail></Error>".encode()
