"""`hubweir` with one planted defect in its queues, named by PLANTED: the control arm of test_message_kill.py and
test_transaction_kill.py.
"""

import os
from array import array

from hubweir.cli.main import main
from hubweir.queue.duplicate_window import DuplicateWindow
from hubweir.queue.fragment_core import FragmentCore
from hubweir.queue.message_session import MessageSession, MessageSessions
from hubweir.queue.operation import ENDED, SESSION_STATE, SETTLED
from hubweir.queue.transaction_decisions import Fate, TransactionDecisions
from hubweir.queue.transaction_parts import TransactionParts

gather, gather_joined = FragmentCore.gather, FragmentCore.gather_joined


def without(code):  # type: ignore[no-untyped-def]
    """Operations of this code are answered and never logged."""

    def hasty(self, operations, on_done=None):  # type: ignore[no-untyped-def]
        if operations and operations[0].code == code and on_done is not None:
            on_done(None)
        else:
            gather(self, operations, on_done)

    def hasty_joined(self, its, counts, on_done=None):  # type: ignore[no-untyped-def]
        if its == code and on_done is not None:
            on_done(None)
        else:
            gather_joined(self, its, counts, on_done)

    FragmentCore.gather = hasty  # type: ignore[method-assign]
    FragmentCore.gather_joined = hasty_joined  # type: ignore[method-assign]


def forgotten_ids() -> None:
    DuplicateWindow.duplicates_in = lambda self, data, fields, **named: []  # type: ignore[method-assign]


def held_sessions_given() -> None:
    MessageSession.is_free = property(lambda self: not self.is_ending)  # type: ignore[method-assign, assignment]


def passed_over() -> None:
    MessageSessions.look_again = lambda self, messages, counts: array("q")  # type: ignore[method-assign,assignment,return-value]


def without_records(owner, name):  # type: ignore[no-untyped-def]
    """The part of a transaction that this method of a class makes is taken in, and never logged."""
    make = getattr(owner, name)

    def hasty(self, *args):  # type: ignore[no-untyped-def]
        part = make(self, *args)
        return type(part)([], part.run, part.on_done)

    setattr(owner, name, hasty)


def never_committed() -> None:
    TransactionDecisions.fate = lambda self, transaction: Fate.ROLLED_BACK  # type: ignore[method-assign]


{
    "settlements": lambda: without(SETTLED),
    "states": lambda: without(SESSION_STATE),
    "ids": forgotten_ids,
    "holders": held_sessions_given,
    "order": passed_over,
    "prepared": lambda: without_records(TransactionParts, "prepare"),
    "decided": lambda: without_records(TransactionDecisions, "decide"),
    "ended": lambda: without(ENDED),
    "fate": never_committed,
}[os.environ["PLANTED"]]()
main()
