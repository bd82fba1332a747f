"""The ledger of sign-ins as a portal uses it: its process's own, and over several processes the supervisor's besides.

Both are asked, and what either knows holds. While the supervisor is away each process goes by what it saw itself: its
portal has to work then, too.
"""

from __future__ import annotations

from hubweir.auth.sign_in_ledger import SignInLedger
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.sign_in import AskSession, EndSession, SessionTold, SignInSucceeded, SignInTried, TrySignIn
from hubweir.gateway.gateway_process import GatewayProcess
from hubweir.gateway.status import ask_in_time


class SharedLedger:
    """See the module's text."""

    def __init__(self, process: GatewayProcess) -> None:
        self._process = process
        self._own = SignInLedger(process.env)

    async def try_now(self, peer: str) -> int:
        """As SignInLedger.try_now."""
        wait_ms = self._own.try_now(peer)
        if wait_ms:
            return wait_ms
        told = await self._ask(TrySignIn(peer))
        if isinstance(told, SignInTried) and told.wait_ms:
            self._own.succeeded(peer)  # it did not try here
            return told.wait_ms
        return 0

    async def succeeded(self, peer: str) -> None:
        """As SignInLedger.succeeded."""
        self._own.succeeded(peer)
        await self._ask(SignInSucceeded(peer))

    async def end_session(self, mark: str) -> None:
        """As SignInLedger.end_session; behind it every process knows."""
        self._own.end_session(mark)
        await self._ask(EndSession(mark))

    async def is_over(self, mark: str) -> bool:
        """As SignInLedger.is_over."""
        if self._own.is_over(mark):
            return True
        told = await self._ask(AskSession(mark))
        return isinstance(told, SessionTold) and told.is_over

    async def _ask(self, command: Command) -> Answer | None:
        """The supervisor's answer; None: there is no supervisor, or it does not answer."""
        supervisor = self._process.supervisor
        return None if supervisor is None or not supervisor.is_up else await ask_in_time(supervisor, command)
