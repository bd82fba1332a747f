"""One request of somebody who is signed in, with what a page needs to answer it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hubweir.errors import TIMED_OUT, UNAUTHORIZED, ServiceError
from hubweir.gateway.gateway import Gateway
from hubweir.gateway.http.exchange import Request, Response, answer_of
from hubweir.gateway.http.problem import status_of
from hubweir.namespace.address import not_found
from hubweir.namespace.entity import AnyEntity, Entity, EntityDescription
from hubweir.namespace.error_text import unauthorized
from hubweir.namespace.rights import Rights, right_name
from hubweir.portal.form import Form
from hubweir.portal.navigation import NAMESPACE_PAGES, NavigationItem, tabs_of
from hubweir.portal.notices import notice_text
from hubweir.portal.paths import path_to
from hubweir.portal.rendering import Templates, redirect
from hubweir.portal.service_samples import ServiceSamples
from hubweir.portal.session import Identity

if TYPE_CHECKING:
    from hubweir.alarms import Alarms

T = TypeVar("T")
K = TypeVar("K", bound=EntityDescription)

ANSWER_S = 10.0
FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class Visit:
    """name: of the entity that the address names, as it stands there; "" for none. form: of a POST, else empty.

    has_alarms: whether those who manage the session's namespace may see the alarms of the service. samples: what all
    processes measure.
    """

    templates: Templates
    samples: ServiceSamples
    alarms: Alarms
    has_alarms: bool
    identity: Identity
    request: Request
    page: str
    name: str
    query: Form
    form: Form

    @property
    def gateway(self) -> Gateway:
        """Of the namespace that the session is for."""
        return self.identity.gateway

    @property
    def manage(self) -> Rights:
        """The right, for templates."""
        return Rights.MANAGE

    @property
    def namespace_pages(self) -> Sequence[NavigationItem]:
        """The further pages of the namespace, for who may manage it."""
        return NAMESPACE_PAGES

    def rights_words(self, rights: Rights) -> str:
        """The rights of a policy, as the service's portal tells them."""
        return ", ".join(right_name(each) for each in (Rights.MANAGE, Rights.SEND, Rights.LISTEN) if each in rights)

    def tabs_of(self, entity: AnyEntity) -> Sequence[NavigationItem]:
        """What there is to do with an entity, as far as rights go."""
        return tabs_of(entity, self.may)

    @property
    def is_fragment(self) -> bool:
        """Whether a page that is shown asks for a part of itself."""
        return self.request.headers.get(b"hx-request") == b"true"

    def may(self, right: Rights, name: str = "") -> bool:
        """Whether whoever is signed in has the right (of several, any) on an entity, with "" on the namespace."""
        return self.identity.may(right, name)

    def check(self, right: Rights, name: str) -> None:
        """Raise ServiceError UNAUTHORIZED when the right is not there."""
        if not self.may(right, name):
            named = right if right in (Rights.SEND, Rights.LISTEN, Rights.MANAGE) else Rights.LISTEN
            place = f"sb://{self.gateway.settings.host_name}/{name}"
            raise ServiceError(UNAUTHORIZED, unauthorized(right_name(named), place))

    def entity(self, kind: type[K]) -> Entity[K]:
        """The entity that the address names; ServiceError NOT_FOUND."""
        return self.gateway.namespace.get(self.name, kind)

    def any_entity(self) -> AnyEntity:
        """As `entity`, of any kind."""
        found = self.gateway.namespace.find_any(self.name)
        if found is None:
            raise not_found(self.name, host=self.gateway.settings.host_name)
        return found

    async def ask(self, start: Callable[[Callable[[T | ServiceError], None]], None]) -> T:
        """Wait for a completion, as answer_of does, and at most ANSWER_S; then ServiceError TIMED_OUT."""
        try:
            async with asyncio.timeout(ANSWER_S):
                return await answer_of(start)
        except TimeoutError:
            text = f"There was no answer within {ANSWER_S:.0f} s; whether it was done is not known. Look first."
            raise ServiceError(TIMED_OUT, text) from None

    def show(self, template: str, *, status: int = 200, **values: object) -> Response:
        """A page, or a part of one."""
        # They may name entities of any namespace.
        standing = self.alarms.current() if self.may(Rights.MANAGE) and self.has_alarms else ()
        base = {
            "visit": self,
            "namespace": self.gateway.namespace.description.name,
            "rights": Rights,
            "alarms": standing,
            "notice": notice_text(self.query.get("notice", ""), self.query.get("done", "")),
            "problem": None,
        }
        return self.templates.answer(template, {**base, **values}, status=status)

    def show_form(self, template: str, problem: ServiceError | None, **values: object) -> Response:
        """A page with a form. problem: why what was entered is not done; None: nothing was."""
        status = 200 if problem is None else status_of(problem)
        return self.show(template, status=FORBIDDEN if status == 401 else status, problem=problem, **values)

    def go(self, page: str, name: str = "", **query: object) -> Response:
        """Go to another page: what a change ends with."""
        return redirect(path_to(page, name, **query))
