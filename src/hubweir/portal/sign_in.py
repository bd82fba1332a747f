"""Signing in by a rule's name and key, a connection string, a shared access signature or a JSON Web Token; signing out.

Whoever fails learns nothing: not whether the rule, the entity or the namespace is there. A key does not come over plain
HTTP from another machine, unless SASL PLAIN may (the setting plain_without_tls). Who failed, and who signed out, is
known to all processes of a service (shared_ledger.py).
"""

from __future__ import annotations

import base64
import ipaddress
from dataclasses import dataclass

from hubweir.auth.authorization_rule import Secret, find_rule, key_matches
from hubweir.auth.refusal import AuthRefused
from hubweir.auth.shared_access_signature import SharedAccessSignature, is_signature
from hubweir.auth.sign_in_ledger import session_mark
from hubweir.errors import ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.refusals import What
from hubweir.namespace.address import address_at
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.resource_path import fold
from hubweir.portal.form import Form
from hubweir.portal.notices import notice_text
from hubweir.portal.paths import HOME, is_own_path
from hubweir.portal.rendering import Templates, redirect
from hubweir.portal.session import NONCE_BYTES, PortalSession, key_of, rule_of, write_cookie
from hubweir.portal.session_cookie import cookie_headers
from hubweir.portal.shared_ledger import SharedLedger

REFUSED = "This name, key or token is not right, or it is not for this namespace."
NO_ISSUER = "This service takes no JSON Web Tokens: no issuer is configured whose tokens it would trust."
NO_ROLE = "The token is good, and has none of the roles that give rights here."
TOO_LONG = "The token is too long for a browser's cookie: sign in with a shorter one, or with a policy's key."
# A browser keeps a cookie of 4,096 bytes, with its name and attributes.
COOKIE_BYTES = 3_900


@dataclass(frozen=True, slots=True)
class _Proof:
    """Who proved to be what: the session's rule, "" for a JSON Web Token, the entity that it is of, and with which key
    its cookie is signed.
    """

    gateway: Gateway
    rule: str
    entity: str
    key: Secret
    token: str = ""


class SignIn:
    """See the module's text."""

    def __init__(self, process: GatewayProcess, templates: Templates) -> None:
        self._process = process
        self._templates = templates
        self._ledger = SharedLedger(process)

    def form(self, request: Request, query: Form, *, problem: str = "", status: int = 200, given: Form | None = None
             ) -> Response:  # fmt: skip
        """The page with the form. given: what was entered, to be corrected; keys and tokens are not sent back."""
        to = (given or query).get("to", "")
        values = {
            "problem": problem,
            "notice": notice_text(query.get("notice", "")),
            "given": {name: (given or {}).get(name, "") for name in ("rule", "entity", "namespace")},
            "to": to if is_own_path(to) else "",
            "has_namespaces": len(self._process.gateways) > 1,
            "takes_json_web_tokens": any(each.settings.issuer is not None for each in self._process.gateways),
            "is_plain": not self._may_send_keys(request),
        }
        return self._templates.answer("sign_in.html", values, status=status)

    async def sign_in(self, request: Request, form: Form) -> Response:
        """To the page that was asked for, with a session; or the form again, and what is wrong."""
        if not self._may_send_keys(request):
            return self.form(request, {}, problem="Keys do not go over plain HTTP.", status=403, given=form)
        wait_ms = await self._ledger.try_now(request.peer)
        if wait_ms:
            problem = (
                f"There were too many failed tries from your address. Wait {-(-wait_ms // 1000)} s, then try again."
            )
            return self.form(request, {}, problem=problem, status=429, given=form)
        proof = self._proof(request, form)
        if isinstance(proof, str):
            gateway = self._process.default
            gateway.counters["gateway.tokens_refused"] += 1
            gateway.refusals.describe(What.HTTP, "401", "A sign-in to the portal failed.", peer=request.peer)
            return self.form(request, {}, problem=proof, status=401, given=form)
        await self._ledger.succeeded(request.peer)
        wall_ms = proof.gateway.env.now_ms()
        nonce = base64.urlsafe_b64encode(proof.gateway.env.random_bytes(NONCE_BYTES)).decode()
        session = PortalSession(
            proof.gateway.settings.namespace, proof.rule, proof.entity, proof.token, wall_ms, wall_ms, nonce
        )
        cookie = write_cookie(session, proof.key)
        if len(cookie) > COOKIE_BYTES:
            return self.form(request, {}, problem=TOO_LONG, status=400, given=form)
        to = form.get("to", "")
        where = to if is_own_path(to) else HOME
        return redirect(where, cookie_headers(request, cookie))

    async def sign_out(self, session: PortalSession) -> None:
        """Its cookie means nothing any more."""
        await self._ledger.end_session(session_mark(session.nonce))

    async def is_over(self, session: PortalSession) -> bool:
        """Whether somebody signed out of it."""
        return await self._ledger.is_over(session_mark(session.nonce))

    def _may_send_keys(self, request: Request) -> bool:
        """Whether what the peer sends is read by nobody in between; or whoever runs the service said that it may be."""
        if request.base_uri.startswith("https:") or self._process.default.settings.plain_without_tls:
            return True
        try:
            return ipaddress.ip_address(request.peer.partition("%")[0]).is_loopback
        except ValueError:
            return False

    def _proof(self, request: Request, form: Form) -> _Proof | str:
        """What was proved, or why nothing was."""
        text = form.get("secret", "").strip()
        entity, namespace = form.get("entity", "").strip().strip("/"), form.get("namespace", "").strip()
        if is_signature(text):
            return self._by_token(text)
        if text.count(".") == 2 and "=" not in text:
            return self._by_json_web_token(request, text, namespace)
        if "=" in text and fold(text).lstrip().startswith("endpoint"):
            try:
                pasted = ConnectionString.parse(text)
            except ServiceError as error:
                return error.text
            if pasted.signature is not None:
                return self._by_token(pasted.signature)
            if pasted.key_name is None or pasted.key is None:
                return "The connection string has no key."
            return self._by_key(request, pasted.key_name, pasted.key, pasted.entity_path or entity, namespace)
        return self._by_key(request, form.get("rule", "").strip(), Secret(text), entity, namespace)

    def _by_key(self, request: Request, name: str, key: Secret, entity: str, namespace: str) -> _Proof | str:
        gateway = self._gateway(request, name, key, namespace)
        at = address_at(tuple(entity.split("/")), gateway.namespace.find_any) if entity else None
        found = at.entity if at is not None and not at.part else None
        rules = gateway.namespace.description.rules
        if found is not None:
            rules = found.description.rules
        # Without the entity the same work is done, and nothing is proved.
        rule = find_rule(name, rules)
        is_good = key_matches(rule, key)
        if not is_good or rule is None or (entity and found is None):
            return REFUSED
        return _Proof(gateway, rule.name, found.name if found is not None else "", key_of(rule, key))

    def _by_token(self, token: str) -> _Proof | str:
        gateway = self._process.of_token(token)
        try:
            verified = gateway.authorization.verify(token)
        except AuthRefused as refused:
            return f"The token is not taken: {refused.text}"
        signature = verified.token
        if not isinstance(signature, SharedAccessSignature):
            return REFUSED
        at = address_at(signature.scope.segments, gateway.namespace.find_any) if signature.scope.segments else None
        entity = at.entity.name if at is not None and at.entity is not None else ""
        own = rule_of(gateway, entity, verified.rule_name) if entity else None
        rule = own or rule_of(gateway, "", verified.rule_name)
        if rule is None:
            return REFUSED
        return _Proof(gateway, rule.name, entity if own is not None else "", key_of(rule), token)

    def _by_json_web_token(self, request: Request, token: str, namespace: str) -> _Proof | str:
        gateway = self._gateway(request, "", Secret(""), namespace)
        if gateway.settings.issuer is None:
            return NO_ISSUER
        try:
            verified = gateway.authorization.verify(token)
        except AuthRefused as refused:
            return f"The token is not taken: {refused.text}"
        return _Proof(gateway, "", "", Secret(token), token) if verified.rights else NO_ROLE

    def _gateway(self, request: Request, rule: str, key: Secret, namespace: str) -> Gateway:
        """The namespace of the host, else the one that is named, else the first whose rule has this key."""
        named = self._process.named(request.headers.get(b"host", b"").decode("ascii"))
        if named is None and namespace:
            wanted = (each for each in self._process.gateways if fold(each.settings.namespace) == fold(namespace))
            named = next(wanted, self._process.default)
        return named or self._process.of_key(rule, key)
