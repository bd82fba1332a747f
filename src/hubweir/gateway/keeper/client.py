"""Follows the catalogs of a keeper in another process, over one stream, and tells it what is applied here.

Each namespace that is followed has a copy of its catalog. The keeper sends the whole first, then each operation, in
order. When the stream is away the copies stay as they are; when it is back each is made anew from a snapshot, and so is
one that an operation does not fit. Nobody but the keeper changes a catalog (followed_namespace.py asks it to).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from hubweir.broker.commands.command import Answer, Command, OnAnswer, Owner, Push, nobody_waits
from hubweir.broker.commands.keeper import (
    CatalogApplied,
    CatalogChanged,
    CatalogFollowed,
    CatalogPart,
    FollowCatalog,
    NamespacesChanged,
    TellUses,
    UsesWanted,
)
from hubweir.env import Env, Timer
from hubweir.errors import HubweirError
from hubweir.gateway.brokers import BrokerClient, error_of
from hubweir.gateway.keeper.answer_limit import answered_within
from hubweir.gateway.keeper.followed_namespace import FollowedNamespace
from hubweir.namespace.followed_catalog import FollowedCatalog
from hubweir.namespace.tiers import Profile

logger = logging.getLogger(__name__)

# A keeper that does not serve a namespace yet, or a snapshot that cannot be read, is not asked more often.
FOLLOW_AGAIN_MS = 1_000
# A change may wait for a broker that stalls, which is killed within 13 s, and for other changes. A keeper that says
# nothing for longer stalls itself, and nobody knows for how long.
CHANGE_LIMIT_MS = 60_000

OnFollowed = Callable[[FollowedNamespace], None]


@dataclass(slots=True)
class _Followed:
    """parts: of a snapshot that is on its way. following: the operations that come fit the copy.

    on_first: whom the first snapshot is told to. attempt: the number of the newest FollowCatalog.
    """

    namespace: FollowedNamespace
    on_first: OnFollowed | None
    parts: list[bytes] = field(default_factory=list)
    following: bool = False
    is_telling: bool = False  # the keeper is told at the end of this turn what is applied
    attempt: int = 0
    again: Timer | None = None


class KeeperClient:
    """See the module's text. Whoever makes the stream calls `came` and `went`; it is up or not when this is made.

    process: the id of this process, as it is in its commands to brokers. on_namespaces: called with the version and the
    bytes of each NamespacesChanged. on_following: called whenever a copy is as new as the keeper has told.
    """

    def __init__(self, env: Env, keeper: BrokerClient, process: int, *, is_up: bool = False) -> None:
        self.owner = Owner(process, -1)
        self.is_up = is_up
        self._env = env
        self._keeper = keeper
        self._followed: dict[str, _Followed] = {}
        self.on_namespaces: Callable[[int, bytes], None] = lambda version, namespaces: None
        self.on_following: Callable[[], None] = lambda: None
        keeper.listen(self._pushed)

    def follow(self, name: str, *, profile: Profile, host: str, on_first: OnFollowed) -> FollowedNamespace:
        """Follow a namespace by its name. on_first: called once, when the copy is whole for the first time.

        profile, host: as its writer has them (CatalogWriter).
        """
        namespace = FollowedNamespace(self, name, FollowedCatalog(profile=profile, host=host))
        followed = self._followed[name] = _Followed(namespace, on_first)
        if self.is_up:
            self._begin(followed)
        return namespace

    def unfollow(self, name: str) -> None:
        """Follow a namespace no more: what comes of it is for nobody."""
        self._forget(self._followed.pop(name))

    def is_following(self, name: str) -> bool:
        """Whether the copy of a namespace is as new as the keeper has told."""
        followed = self._followed.get(name)
        return followed is not None and followed.following

    def submit(self, command: Command, on_answer: OnAnswer) -> None:
        """Ask the keeper something else (followed_namespace.py)."""
        self._keeper.submit(command, on_answer)

    def change(self, command: Command, on_answer: OnAnswer) -> None:
        """Ask the keeper for a change. As `submit`; after CHANGE_LIMIT_MS without an answer nobody knows what became of
        it, and what the keeper says then is for nobody.
        """
        self._keeper.submit(command, answered_within(CHANGE_LIMIT_MS, self._env, on_answer))

    def came(self) -> None:
        """The stream stands, for the first time or again: nothing that was said over another one counts."""
        self.is_up = True
        for followed in self._followed.values():
            self._begin(followed)

    def went(self) -> None:
        """The stream ended."""
        self.is_up = False
        for followed in self._followed.values():
            self._forget(followed)

    def stop(self) -> None:
        """Ask nothing more by itself."""
        self.went()

    # Inside

    def _forget(self, followed: _Followed) -> None:
        """What comes of the snapshot that was asked for last is for nobody."""
        followed.following = False
        followed.parts = []
        followed.attempt += 1
        if followed.again is not None:
            followed.again.cancel()
            followed.again = None

    def _begin(self, followed: _Followed) -> None:
        self._forget(followed)
        attempt = followed.attempt

        def answered(answer: Answer) -> None:
            if followed.attempt == attempt:
                self._answered(followed, answer)
            else:
                followed.parts = []  # of the snapshot that was asked for before

        self._keeper.submit(FollowCatalog(self.owner, followed.namespace.name), answered)

    def _answered(self, followed: _Followed, answer: Answer) -> None:
        parts, followed.parts = b"".join(followed.parts), []
        if not isinstance(answer, CatalogFollowed):
            self._try_again(followed, error_of(answer))
            return
        try:
            if len(parts) != answer.size_bytes:
                raise HubweirError(f"{len(parts)} of {answer.size_bytes} bytes of the snapshot came")
            followed.namespace.catalog.restore(parts)
        except HubweirError as error:
            self._try_again(followed, error)
            return
        followed.following = True
        self._tell_applied(followed)
        on_first, followed.on_first = followed.on_first, None
        if on_first is not None:
            on_first(followed.namespace)
        self.on_following()

    def _try_again(self, followed: _Followed, error: HubweirError) -> None:
        if self.is_up:
            logger.error("the catalog of namespace %s is not followed: %s", followed.namespace.name, error)
            followed.again = self._env.machine.call_later(FOLLOW_AGAIN_MS, lambda: self._begin(followed))

    def _pushed(self, push: Push) -> None:
        if isinstance(push, NamespacesChanged) and push.owner == self.owner:
            self.on_namespaces(push.version, push.namespaces)
        if not isinstance(push, CatalogPart | CatalogChanged | UsesWanted) or push.owner != self.owner:
            return
        followed = self._followed.get(push.namespace)
        if followed is None:
            return
        match push:
            case CatalogPart(data=data):
                followed.parts.append(bytes(data))
            case CatalogChanged():
                self._changed(followed, push)
            case UsesWanted(question=question, log_id=log_id):
                unused_ms = followed.namespace.unused_ms(log_id)
                self.submit(TellUses(self.owner, push.namespace, question, unused_ms), nobody_waits)

    def _changed(self, followed: _Followed, push: CatalogChanged) -> None:
        if not followed.following:
            return  # it came before the snapshot that is on its way
        try:
            followed.namespace.catalog.apply(push.version, push.operation)
        except HubweirError as error:
            logger.error("the catalog of namespace %s is followed anew: %s", followed.namespace.name, error)
            self._begin(followed)
        else:
            self._tell_applied(followed)

    def _tell_applied(self, followed: _Followed) -> None:
        """Once for all operations of a turn: they come by the hundred when a deployment makes its entities."""
        if not followed.is_telling:
            followed.is_telling = True
            self._env.at_turn_end(lambda: self._say_applied(followed))

    def _say_applied(self, followed: _Followed) -> None:
        followed.is_telling = False
        namespace = followed.namespace
        if self._followed.get(namespace.name) is not followed:
            return  # it is followed no more; another may have its name
        # A keeper that does not hear it takes this process for dead, and is followed anew.
        self.submit(CatalogApplied(self.owner, namespace.name, namespace.catalog.version), nobody_waits)
