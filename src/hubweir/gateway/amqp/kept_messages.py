"""Messages that a receive brought and that were not sent yet: which of them may go out, and which others may have.

Messages that are locked can be given back. Those that were taken away are in no queue any more: they stay until they
are sent, or the link ends. Where messages are to be taken away before they go out, that is done for the next ones of
those that are locked: `taking` says by which tokens, `took` what became of them.
"""

from __future__ import annotations

from array import array

from hubweir.amqp.transport.sender_link import SenderLink, SendProgress
from hubweir.gateway.amqp.sent_tokens import SentTokens
from hubweir.kernels import message_tokens
from hubweir.kernels.contract import MESSAGE_WIDTH, Q_LOCK, Q_LOCK_CHECK, Q_LOCKED_UNTIL_MS, Q_PARTITION, Q_RECORD


class KeptMessages:
    """Those of one part of a link (receiver_part.py). Rows are message rows (kernels/contract.py).

    count: how many there are.
    """

    def __init__(self) -> None:
        self.count = 0
        self._run: bytes | memoryview = b""
        self._rows: array[int] = array("q")
        self._next = 0  # the row that is to be sent next
        self._taken = 0  # rows in front of it are in no queue any more
        self._taking = 0  # rows in front of it are being taken away; 0: none is

    def put(self, run: bytes | memoryview, rows: array[int], *, are_taken: bool) -> None:
        """Keep these; the ones before were sent. are_taken: they are in no queue any more."""
        self._run, self._rows, self._next, self.count = run, rows, 0, len(rows) // MESSAGE_WIDTH
        self._taken = self.count if are_taken else 0

    def add(self, run: bytes | memoryview, rows: array[int]) -> None:
        """Keep these, too, behind those that are there; all are locked."""
        if not self.count:
            self.put(run, rows, are_taken=False)
            return
        behind = len(self._run)
        rows[Q_RECORD::MESSAGE_WIDTH] = array("q", [behind + at for at in rows[Q_RECORD::MESSAGE_WIDTH]])
        self._run, self._rows = b"".join((self._run, run)), self._rows + rows
        self.count += len(rows) // MESSAGE_WIDTH

    @property
    def size_bytes(self) -> int:
        """About the bytes of all of them, those included that came with them and were sent."""
        return len(self._run)

    @property
    def _end(self) -> int:
        """The row behind the last one."""
        return self._next + self.count

    @property
    def _first_free(self) -> int:
        """The first row of those that others may have."""
        return max(self._next, self._taken, self._taking)

    @property
    def are_locked(self) -> bool:
        """Whether others could have some of them."""
        return self._first_free < self._end

    @property
    def is_taken(self) -> bool:
        """Whether the next one is in no queue any more."""
        return self._next < self._taken

    @property
    def is_taking(self) -> bool:
        """Whether some are being taken away."""
        return self._taking > 0

    @property
    def reserved(self) -> int:
        """How many are in no queue any more, or are being taken away: they are for credit that is there."""
        return max(0, max(self._taken, self._taking) - self._next)

    def taking(self, count: int) -> bytes:
        """The tokens of at most so many of the next ones, which are being taken away from now on."""
        self._taking = min(self._next + count, self._end)
        return message_tokens(self._rows, self._next, self._taking)

    def took(self, codes: bytes) -> None:
        """They were taken away, but those with a code other than 0: their locks ended, and somebody else gets them."""
        taken, behind = array("q"), self._rows[self._taking * MESSAGE_WIDTH :]
        for row, code in enumerate(codes, self._next):
            if not code:
                taken += self._rows[row * MESSAGE_WIDTH : (row + 1) * MESSAGE_WIDTH]
        self._taken = len(taken) // MESSAGE_WIDTH
        for column, nothing in ((Q_LOCK, 0), (Q_LOCK_CHECK, 0), (Q_LOCKED_UNTIL_MS, -1)):
            taken[column::MESSAGE_WIDTH] = array("q", (nothing,)) * self._taken
        self._rows, self._next, self._taking = taken + behind, 0, 0
        self.count = len(self._rows) // MESSAGE_WIDTH

    def not_taken(self) -> None:
        """They are locked as before, or gone."""
        self._taking = 0

    def send(
        self, link: SenderLink, id_prefix: bytes, *, takes: bool, sent: SentTokens | None, max_bytes: int
    ) -> SendProgress:
        """Send as many as may go. takes: only those that were taken away. sent: gets the tokens; None: they go settled.

        id_prefix: see FragmentPlace.
        """
        first, rows = self._next, self._rows[: self._taken * MESSAGE_WIDTH] if takes else self._rows
        progress = link.send_messages(
            self._run, rows, first, id_prefix=id_prefix, settled=sent is None, max_bytes=max_bytes
        )
        self._next += progress.events
        self.count -= progress.events
        if sent is not None:
            sent.add(progress.first_id, message_tokens(rows, first, self._next))
        if not self.count:
            self._let_go()
        return progress

    def release(self) -> bytes:
        """Keep those no longer that others may have: their tokens."""
        first = self._first_free
        tokens = message_tokens(self._rows, first, max(first, self._end))
        self._drop(first)
        return tokens

    def _drop(self, from_row: int) -> None:
        del self._rows[from_row * MESSAGE_WIDTH :]
        self.count = max(0, len(self._rows) // MESSAGE_WIDTH - self._next)
        if not self.count:
            self._let_go()

    def _let_go(self) -> None:
        """There are none any more."""
        self._run, self._rows, self._next, self._taken = b"", array("q"), 0, 0


def name_partition(rows: array[int], number: int) -> None:
    """Have messages say of which fragment they are, as those of a partitioned entity do."""
    rows[Q_PARTITION::MESSAGE_WIDTH] = array("q", (number,)) * (len(rows) // MESSAGE_WIDTH)
