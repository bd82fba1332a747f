"""Commands by which the portals of several processes tell one another of sign-ins, through the supervisor.

A peer that fails at one process waits at all, and a session that somebody signed out of is over at all. Keys and
sessions do not travel: a peer is an address, a session the hash of its nonce. (auth/sign_in_ledger.py)
"""

from __future__ import annotations

from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import Answer, answer, command
from hubweir.broker.commands.process import Done


@answer(236)
class SignInTried(Answer, frozen=True):
    """wait_ms: before the peer may try; 0: it tries now, and that counts as a failure until SignInSucceeded."""

    wait_ms: int


@command(208, SignInTried)
class TrySignIn(ProcessCommand, frozen=True):
    """Somebody at this address is about to be judged."""

    peer: str


@command(209, Done)
class SignInSucceeded(ProcessCommand, frozen=True):
    """The try of a peer was a good one: it counts as no failure."""

    peer: str


@answer(237)
class SessionTold(Answer, frozen=True):
    """is_over: somebody signed out of it."""

    is_over: bool


@command(210, SessionTold)
class AskSession(ProcessCommand, frozen=True):
    """Whether a session is over. mark: of it."""

    mark: str


@command(211, Done)
class EndSession(ProcessCommand, frozen=True):
    """Somebody signed out. mark: of the session."""

    mark: str
