"""The ledger of tokens that transactions move from entity to entity: where each may be, and what cannot be true (P12).

A token is a message that says which move brought it where it is. A move completes some tokens where they are, and sends
each on; all of that in one transaction. Whatever ends meanwhile, each token is in one place, there is no other copy of
it, and a move is done whole or not at all. `Violation` is raised by the first observation that breaks that.

Between the question for a commit and its answer, and behind one that nobody answered, a token may be in two places.
Who is given it in one of them, under a lock that holds, tells for all tokens of the move whether it was done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from hubweir.testing.history_values import Violation


@dataclass(frozen=True, slots=True)
class TokenPlace:
    """entity: one that is sent to. move: the number of the move that brought it there; 0: it began there."""

    entity: str
    move: int


@dataclass(eq=False, slots=True)
class Move:
    """One transaction. origins, goals: where each token was, and where it is sent. is_done: None: nobody knows."""

    origins: Mapping[int, TokenPlace]
    goals: Mapping[int, TokenPlace]
    is_done: bool | None = None


class TokenLedger:
    """See the module's text. possible: where each token may be; all are at start in the beginning."""

    def __init__(self, count: int, start: str) -> None:
        self.possible: dict[int, set[TokenPlace]] = {token: {TokenPlace(start, 0)} for token in range(count)}
        self._open: dict[int, dict[Move, None]] = {token: {} for token in range(count)}
        self._moves = 0

    def new_move(self) -> int:
        """The number of a move that is about to be made."""
        self._moves += 1
        return self._moves

    def moving(self, origins: Mapping[int, TokenPlace], goals: Mapping[int, TokenPlace]) -> Move:
        """A commit is asked for that moves these tokens. Where one of them has gone since, it cannot be done."""
        move = Move(origins, goals)
        if any(origin not in self.possible[token] for token, origin in origins.items()):
            move.is_done = False
            return move
        for token, goal in goals.items():
            self.possible[token].add(goal)
            self._open[token][move] = None
        return move

    def moved(self, move: Move) -> None:
        """The commit was answered: each token is where it was sent, or was moved on since."""
        if move.is_done is False:
            raise Violation(f"P12: a commit of tokens {sorted(move.goals)} was answered, and could not be done")
        self._decide(move, is_done=True)

    def stayed(self, move: Move) -> None:
        """The commit was refused: no token was ever where it was sent."""
        if move.is_done:
            raise Violation(f"P12: a commit of tokens {sorted(move.goals)} was refused, and was done")
        self._decide(move, is_done=False)

    def seen(self, token: int, place: TokenPlace) -> None:
        """Somebody was given it there: it is nowhere else."""
        known = self.possible.get(token, set())
        if place not in known:
            raise Violation(f"P12: token {token} is at {place}, where only {known} can be")
        for move in tuple(self._open[token]):
            self._decide(move, is_done=move.goals[token] == place)

    def left(self, found: Iterable[tuple[int, TokenPlace]]) -> set[int]:
        """These are all that there are, with no client at work. Returns the tokens that are missing."""
        places: dict[int, list[TokenPlace]] = {}
        for token, place in found:
            places.setdefault(token, []).append(place)
        doubled = sorted(token for token, each in places.items() if len(each) > 1)
        if doubled:
            raise Violation(f"P12: tokens {doubled} are there more than once")
        for token, (place,) in places.items():
            self.seen(token, place)
        return self.possible.keys() - places.keys()

    def _decide(self, move: Move, *, is_done: bool) -> None:
        """A move is done, or is not, for all its tokens. Nothing when that is known."""
        if move.is_done is not None:
            return
        move.is_done = is_done
        for token, goal in move.goals.items():
            del self._open[token][move]
            known = self.possible[token]
            left = known & {goal} if is_done else known - {goal}
            if not left:
                what = "was moved" if is_done else "stayed"
                raise Violation(f"P12: token {token} is at {known}, and another one of its transaction {what}")
            self.possible[token] = left
            if is_done:
                for other in tuple(self._open[token]):  # whoever had it before, and lost it
                    self._decide(other, is_done=False)
