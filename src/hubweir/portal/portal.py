"""The life of a request to the portal: who asks, which page, may they, what does it answer.

Anybody gets the files that pages are made of and the form to sign in. Everything else asks for a session; without one
a page leads to the form. A change is a POST: it must come from a page of this origin and carry the nonce of its session
(CSRF). A host is refused that is neither an address nor a name of the service: with one, another site could have a
browser on this machine talk to us as if it were that site (DNS rebinding).
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
from dataclasses import replace

import msgspec

from hubweir.alarms import Alarms
from hubweir.errors import INTERNAL_ERROR, NOT_FOUND, ServiceError
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import ClientGone, Request, Response
from hubweir.gateway.http.problem import HttpRefusal, headers_of, status_of
from hubweir.gateway.refusals import What
from hubweir.namespace.host_names import bare_host
from hubweir.portal.assets import asset
from hubweir.portal.form import Form, read_form, read_query
from hubweir.portal.paths import HOME, is_own_path, path_to
from hubweir.portal.rendering import Templates, redirect
from hubweir.portal.routes import PageRoute, find_page
from hubweir.portal.service_samples import ServiceSamples, TakeSamples
from hubweir.portal.session import RENEW_MS, Identity, read_cookie, write_cookie
from hubweir.portal.session_cookie import cookie_headers, cookie_of, no_cookie
from hubweir.portal.sign_in import SignIn
from hubweir.portal.visit import FORBIDDEN, Visit

logger = logging.getLogger(__name__)

CSRF_FIELD = "csrf"


class Portal:
    """See the module's text. take_samples: asks all processes of the service what they measure."""

    def __init__(self, process: GatewayProcess, take_samples: TakeSamples) -> None:
        self._process = process
        self._alarms: Alarms = process.alarms
        self._templates = Templates()
        self._samples = ServiceSamples(take_samples, process.env)
        self._sign_in = SignIn(process, self._templates)
        # Compiled by whoever loads the portal, away from the loop.
        self._templates.compile_all()

    async def answer(self, request: Request) -> Response:
        """The answer to a request whose path begins with `portal`. Raises ClientGone alone."""
        identity: Identity | None = None
        try:
            page, name = _page_of(request)
            if page == "static":
                return _static(request, name)
            _check_host(self._process, request)
            if request.method == "POST":
                _check_origin(request)
            cookie = cookie_of(request)
            identity = await self._identity(request, cookie)
            if page in ("sign-in", "sign-out"):
                return await self._answer_sign_in(request, page, identity)
            if identity is None:
                return _to_sign_in(request, had_cookie=bool(cookie))
            response = await self._answer_page(request, page, name, identity)
            return self._renewed(request, response, identity)
        except ClientGone:
            raise
        except (ServiceError, HttpRefusal) as refusal:
            return self._problem(request, refusal, identity)
        except Exception:
            logger.exception("a fault of the service ends a request to the portal")
            failed = ServiceError(INTERNAL_ERROR, "The service failed in answering this request.")
            return self._problem(request, failed, identity)

    async def _identity(self, request: Request, cookie: str) -> Identity | None:
        if not cookie:
            return None
        identity = read_cookie(cookie, self._process)
        # A host of another namespace leads to that one, whatever was signed in for.
        named = self._process.named(_host(request))
        if identity is None or named not in (None, identity.gateway) or await self._sign_in.is_over(identity.session):
            return None
        return identity

    async def _answer_sign_in(self, request: Request, page: str, identity: Identity | None) -> Response:
        if page == "sign-in" and request.method in ("GET", "HEAD"):
            return redirect(HOME) if identity else self._sign_in.form(request, read_query(request))
        if request.method != "POST":
            raise _no_method(["GET", "POST"] if page == "sign-in" else ["POST"])
        form = await read_form(request, self._process.budget)
        if page == "sign-in":
            return await self._sign_in.sign_in(request, form)
        if identity is not None:
            _check_nonce(identity, form)
            await self._sign_in.sign_out(identity.session)
        return redirect(path_to("sign-in", notice="signed-out"), no_cookie(request))

    async def _answer_page(self, request: Request, page: str, name: str, identity: Identity) -> Response:
        route, methods = find_page(request.method, page)
        if not methods or (route is not None and route.is_of_entity is not bool(name)):
            raise ServiceError(NOT_FOUND, "There is no such page.")
        if route is None:
            raise _no_method(methods)
        query, form = read_query(request), {}
        if route.method == "POST":
            form = dict(await read_form(request, self._process.budget, route.form_bytes))
            _check_nonce(identity, form)
        visit = self._visit(identity, request, page, name, query, form)
        _check_right(visit, route)
        return await route.handler(visit)

    def _visit(self, identity: Identity, request: Request, page: str, name: str, query: Form, form: Form) -> Visit:
        has_alarms = identity.gateway is self._process.default
        return Visit(
            self._templates, self._samples, self._alarms, has_alarms, identity, request, page, name, query, form
        )

    def _renewed(self, request: Request, response: Response, identity: Identity) -> Response:
        """The answer with a cookie that says when the session was used. Pages that renew themselves are no use."""
        now_ms = identity.gateway.env.now_ms()
        is_itself = request.headers.get(b"hx-request") == b"true" and "live" in read_query(request)
        if is_itself or now_ms - identity.session.used_ms < RENEW_MS or "set-cookie" in response.headers:
            return response
        used = msgspec.structs.replace(identity.session, used_ms=now_ms)
        headers = {**response.headers, **cookie_headers(request, write_cookie(used, identity.key))}
        return replace(response, headers=headers)

    def _problem(self, request: Request, refusal: ServiceError | HttpRefusal, identity: Identity | None) -> Response:
        """A page that tells an error, with its reference; what it shows besides is what the session may see."""
        symbol = refusal.condition.symbol if isinstance(refusal, ServiceError) else str(refusal.status)
        status = status_of(refusal)
        if status == 401:
            status = FORBIDDEN  # there is nothing that a browser could ask its user for
        gateway = self._process.default if identity is None else identity.gateway
        told = gateway.refusals.describe(What.HTTP, symbol, refusal.text, peer=request.peer)
        text, _, reference = told.rpartition(" TrackingId:")
        text = text.rstrip(",") or told
        headers = {name: value for name, value in headers_of(refusal).items() if name != "www-authenticate"}
        if identity is None:
            values = {"problem_text": text, "reference": reference}
            return self._templates.answer("problem_outside.html", values, status=status, headers=headers)
        visit = self._visit(identity, request, "", "", {}, {})
        answer = visit.show("problem.html", status=status, problem_text=text, reference=reference)
        return replace(answer, headers={**answer.headers, **headers})


def _page_of(request: Request) -> tuple[str, str]:
    """The page that a path names, and the name behind it. segments: `portal` in front."""
    segments = request.segments[1:]
    return (segments[0], "/".join(segments[1:])) if segments else ("", "")


def _static(request: Request, name: str) -> Response:
    found = asset(name)
    if found is None:
        raise ServiceError(NOT_FOUND, "There is no such file.")
    if request.method not in ("GET", "HEAD"):
        raise _no_method(["GET"])
    return found


def _check_host(process: GatewayProcess, request: Request) -> None:
    host = bare_host(_host(request))
    if host == "localhost" or host.endswith(".localhost") or process.named(host) is not None:
        return
    if any(host in gateway.hosts.all for gateway in process.gateways):
        return
    try:
        ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        text = (
            f"The portal is not served under the name '{host[:100]}': start the service with --hostname and that name."
        )
        raise HttpRefusal(421, text) from None


def _check_origin(request: Request) -> None:
    """Refuse a POST that a page of another origin made. Browsers say so; what is no browser has no session to abuse."""
    site, origin = request.header(b"sec-fetch-site"), request.header(b"origin")
    is_own = (
        site == "same-origin" if site is not None else origin is None or origin.partition("://")[2] == _host(request)
    )
    if not is_own:
        raise HttpRefusal(FORBIDDEN, "This form was sent by another site: open the portal and do it there.")


def _check_nonce(identity: Identity, form: Form) -> None:
    if not hmac.compare_digest(form.get(CSRF_FIELD, "").encode(), identity.session.nonce.encode()):
        raise HttpRefusal(FORBIDDEN, "This form belongs to another session: open its page again, then send it.")


def _check_right(visit: Visit, route: PageRoute) -> None:
    if not route.is_open:
        visit.check(route.right, visit.name)


def _to_sign_in(request: Request, *, had_cookie: bool) -> Response:
    """Lead whoever is not signed in to the form, and behind it to the page that they asked for."""
    here = path_to("/".join(request.segments[1:])) + (f"?{request.query}" if request.query else "")
    wanted = here if request.method == "GET" and here != HOME and is_own_path(here) else None
    if request.headers.get(b"hx-request") == b"true":
        target = path_to("sign-in", notice="ended")
        return Response(401, b"", None, {"hx-redirect": target, "cache-control": "no-store"})
    return redirect(path_to("sign-in", to=wanted, notice="ended" if had_cookie else None), no_cookie(request))


def _host(request: Request) -> str:
    return request.headers.get(b"host", b"").decode("ascii")


def _no_method(methods: list[str]) -> HttpRefusal:
    return HttpRefusal(405, f"This page takes {' and '.join(methods)}.", {"allow": ", ".join(methods)})
