"""The issuer of JSON Web Tokens with its keys as their file has them now: an issuer rotates keys, the service stays up.

The file is read again every so often, away from the loop, whether tokens come or not: so a request costs no look at a
disk, and a key that was taken out ends what it signed in that time (rule P17). A file that cannot be read, or holds no
good keys, changes nothing: the keys before it stay, and an alarm says so until it is mended.

Whoever writes the file replaces it as a whole (write another, rename): half a file may be a good file with fewer keys.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container

from hubweir.alarms import ISSUER_KEYS, Alarms
from hubweir.auth.json_web_key import BadKeys
from hubweir.auth.json_web_token import JsonWebToken, TokenIssuer
from hubweir.auth.verified_token import VerifiedToken
from hubweir.env import Env, Lane, Result, Timer

logger = logging.getLogger(__name__)


class IssuerKeys:
    """See the module's text. Everything on the loop but `read`, which runs on a thread of the Env."""

    def __init__(self, issuer: str, audience: str, read: Callable[[], bytes]) -> None:
        """Read the keys once, here. read: the whole file. Raises BadKeys, and what read raises."""
        self._issuer, self._audience, self._read = issuer, audience, read
        self._content = read()
        self.current = TokenIssuer.of_file(issuer, audience, self._content)
        self._alarms: Alarms | None = None
        self._on_change: list[Callable[[], None]] = []
        self._timer: Timer | None = None
        self._is_followed = False

    def verify(
        self, token: JsonWebToken, now_s: int, *, hosts: Container[str] | None = None
    ) -> VerifiedToken[JsonWebToken]:
        """What a token proves by today's keys; see TokenIssuer.verify."""
        return self.current.verify(token, now_s, hosts=hosts)

    def on_change(self, call: Callable[[], None]) -> None:
        """Call this whenever the keys are others: what they signed has to be verified again."""
        self._on_change.append(call)

    def forget(self, call: Callable[[], None]) -> None:
        """Call this no more."""
        self._on_change.remove(call)

    def follow(self, env: Env, every_ms: int, alarms: Alarms) -> None:
        """Read the file again every_ms after the last reading ended, until `stop`."""
        self._is_followed = True
        self._alarms = alarms

        def look() -> None:
            env.offload(Lane.MAINTENANCE, self._read, taken)

        def taken(result: Result[bytes]) -> None:
            if self._is_followed:
                self._timer = env.call_later(every_ms, look)  # first: a change may end the following
                self._take(result)

        self._timer = env.call_later(every_ms, look)

    def stop(self) -> None:
        """Read no more."""
        self._is_followed = False
        if self._timer is not None:
            self._timer.cancel()

    def _take(self, result: Result[bytes]) -> None:
        """Take the file as it is now, if it is another one and good."""
        try:
            content = result.value()
            if content == self._content:
                self._tell(None)
                return
            fresh = TokenIssuer.of_file(self._issuer, self._audience, content)
        except (OSError, BadKeys) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            self._tell(f"its keys stay as they were, their file is no good now: {reason}")
            return
        self._content, self.current = content, fresh
        self._tell(None)
        logger.info("the keys of issuer %s are others now: %d", self._issuer, len(fresh.keys))
        for call in tuple(self._on_change):
            call()

    def _tell(self, problem: str | None) -> None:
        """What is wrong with the file stands as an alarm until it is not."""
        if self._alarms is None:
            return
        about = f"token issuer {self._issuer}"
        if problem is None:
            self._alarms.end(ISSUER_KEYS, about)
        else:
            self._alarms.begin(ISSUER_KEYS, about, problem)
