"""The fragments of an entity in the whole world, as often as each was opened: which locks may hold still."""

from __future__ import annotations

from hubweir.kernels.queue.tokens import check_of
from hubweir.queue.fragment_number import fragment_of
from hubweir.testing.history_values import Violation


class Openings:
    """Of each fragment, the secrets of its locks, newest last. A fragment that is opened knows no lock of before."""

    def __init__(self, entity: str) -> None:
        self._entity = entity
        self._secrets: dict[int, list[bytes]] = {}

    def opened(self, number: int, secret: bytes) -> bool:
        """A fragment was opened. Returns whether it had been open before."""
        its = self._secrets.setdefault(number, [])
        its.append(secret)
        return len(its) > 1

    def is_current(self, token: bytes) -> bool:
        """Whether the fragment that gave this lock was not opened anew since. Violation: none gave it."""
        number, check = int.from_bytes(token[:8], "big"), int.from_bytes(token[8:], "big")
        its = self._secrets[fragment_of(number)]
        if check_of(its[-1], number) == check:
            return True
        if not any(check_of(secret, number) == check for secret in its):
            raise Violation(f"P7: the token {token.hex()} of {self._entity} was given by no fragment")
        return False
