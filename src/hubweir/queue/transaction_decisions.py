"""Transactions over several logs, as the coordinator's log decides them: begun, decided, asked about, and forgotten.

What is begun lives in memory alone: after a crash, and for whoever asks before it is decided, the answer is no
(logged_transactions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any

from hubweir.errors import TRANSACTION_ROLLED_BACK, ServiceError
from hubweir.messaging_store.log import Refused
from hubweir.queue.arrived_records import Data
from hubweir.queue.fragment_core import FragmentCore, OnLogged
from hubweir.queue.operation import DECIDED, ENDED, FORGOTTEN, Operation
from hubweir.queue.transaction import Part


class Fate(Enum):
    """What became of a transaction, as its coordinator's log says. OPEN: that is not decided yet."""

    COMMITTED = "committed"
    ROLLED_BACK = "rolled back"
    OPEN = "open"


class TransactionDecisions:
    """Of one fragment."""

    def __init__(self, core: FragmentCore) -> None:
        self._core = core
        self._begun: dict[bytes, object] = {}  # may still be decided, and by whom
        self._deciding: set[bytes] = set()  # DECIDED is on its way, or ended unknown
        self._unknown: set[bytes] = set()  # of these nobody finds out at the moment whether DECIDED is there

    def begin(self, transaction: bytes, owner: object) -> None:
        """This log is to decide a transaction; owner: whose end gives it up."""
        self._begun[transaction] = owner

    def forget_owner(self, covers: Callable[[Any], bool]) -> None:
        """Those who would have decided these are gone."""
        self._begun = {each: owner for each, owner in self._begun.items() if not covers(owner)}

    def decide(self, transaction: bytes, logs: Sequence[str]) -> Part:
        """The record that commits, as a part. Raises ServiceError TRANSACTION_ROLLED_BACK when that was given up."""
        if self._begun.pop(transaction, None) is None:
            text = "The transaction was rolled back: somebody asked what became of it before it was decided."
            raise ServiceError(TRANSACTION_ROLLED_BACK, text)
        self._deciding.add(transaction)
        said = Operation(DECIDED, transaction=transaction, logs=tuple(each.encode() for each in logs))

        def decided(outcome: Data | Refused) -> None:
            if not isinstance(outcome, Refused):
                self._core.state.apply(said, is_replay=False)
            if not isinstance(outcome, Refused) or outcome.known:
                self._deciding.discard(transaction)
            else:
                self._unknown.add(transaction)

        return Part(self._core.encoded([said]), bytearray(), decided)

    def fate(self, transaction: bytes) -> Fate:
        """What became of one. One that can still be decided, and is not on its way, is given up by that."""
        if transaction in self._core.state.transactions.decided:
            return Fate.COMMITTED
        if transaction in self._unknown:
            self._find_out(transaction)
        if transaction in self._deciding:
            return Fate.OPEN
        self._begun.pop(transaction, None)
        return Fate.ROLLED_BACK

    def _find_out(self, transaction: bytes) -> None:
        """Append what says nothing here: where it is visible, DECIDED is not there, and the next who asks hears it.

        For a log drops a run that ended unknown before it takes another one. (Log.append)
        """
        self._unknown.discard(transaction)

        def told(refused: Refused | None) -> None:
            if refused is None:
                self._deciding.discard(transaction)
            else:
                self._unknown.add(transaction)

        self._core.gather([Operation(ENDED, transaction=transaction, is_committed=False)], told)

    def forget(self, transaction: bytes, on_done: OnLogged) -> None:
        """All logs that took part know that it is committed; on_done when this one's says so."""
        if transaction in self._core.state.transactions.decided:
            self._core.gather([Operation(FORGOTTEN, transaction=transaction)], on_done)
        else:
            on_done(None)
