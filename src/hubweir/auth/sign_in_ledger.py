"""The ledger of sign-ins that all portals of a service share: who failed, and which sessions somebody signed out of.

A service of one process has one; of several each has its own, and the supervisor has one for all (shared_ledger.py).
It is in memory: after a start nobody has failed, and a copy of a cookie that somebody signed out of before is good
until it has been idle for long enough. A session is known by a mark, the hash of its nonce.
"""

from __future__ import annotations

from hashlib import sha256

from hubweir.auth.lockout import Lockout
from hubweir.env import Clock

LIFETIME_MS = 8 * 60 * 60_000  # of a session
SESSIONS_LIMIT = 10_000
_MARK_DIGITS = 32


class SignInLedger:
    """See the module's text."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lockout = Lockout()
        self._over: dict[str, int] = {}  # marks with the time from which on they mean nothing, in that order

    def try_now(self, peer: str) -> int:
        """As Lockout.try_now, now."""
        return self._lockout.try_now(peer, self._clock.monotonic_ms())

    def succeeded(self, peer: str) -> None:
        """As Lockout.succeeded."""
        self._lockout.succeeded(peer)

    def end_session(self, mark: str) -> None:
        """Somebody signed out of a session; of very many, the one that ends first is forgotten."""
        now_ms = self._clock.monotonic_ms()
        self._over.pop(mark, None)  # a second time: it goes to the end, where its time is
        while self._over and (len(self._over) >= SESSIONS_LIMIT or next(iter(self._over.values())) < now_ms):
            del self._over[next(iter(self._over))]
        self._over[mark] = now_ms + LIFETIME_MS

    def is_over(self, mark: str) -> bool:
        """Whether somebody signed out of it."""
        return mark in self._over


def session_mark(nonce: str) -> str:
    """By which a session is known to a ledger."""
    return sha256(nonce.encode()).hexdigest()[:_MARK_DIGITS]
