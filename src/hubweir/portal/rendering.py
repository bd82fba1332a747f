"""Templates, and the headers that every page of the portal carries.

The policy of contents lets a page load what its own origin serves, and nothing else: no script or style within a page,
no frame around it. Nothing is kept by browsers or proxies. Every value is escaped; a name that a template uses and
nobody gave is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.filters import FILTERS

from hubweir.gateway.http.exchange import Response
from hubweir.portal.assets import version
from hubweir.portal.paths import path_to
from hubweir.portal.quantities import bytes_words, count_words, span_words, time_words
from hubweir.portal.rule_words import rule_words

FOLDER = Path(__file__).with_name("templates")
HTML = "text/html; charset=utf-8"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
SECURITY_HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with that browsers hide from us where a form came from.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Templates:
    """The portal's templates, compiled when they are first used, once for all portals of a process."""

    def __init__(self) -> None:
        self._environment = _environment()

    def compile_all(self) -> None:
        """Compile every template, so that no page waits for that. It takes a while: away from the loop."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def answer(
        self, name: str, values: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> Response:
        """The answer that holds a template, filled."""
        body = self._environment.get_template(name).render(values).encode()
        return Response(status, body, HTML, {**SECURITY_HEADERS, **(headers or {})})


@cache
def _environment() -> Environment:
    """What holds the compiled templates. They depend on nothing of a service."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
    )
    environment.filters = {
        **FILTERS,
        "bytes": bytes_words,
        "count": count_words,
        "rule_words": rule_words,
        "span": span_words,
        "time": time_words,
    }
    environment.globals.update(path_to=path_to, asset_version=version)
    return environment


def redirect(path: str, headers: Mapping[str, str] | None = None) -> Response:
    """Go to another page with GET."""
    return Response(303, b"", None, {**SECURITY_HEADERS, "location": path, **(headers or {})})
