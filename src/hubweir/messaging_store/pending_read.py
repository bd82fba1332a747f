"""A read or a search that goes to the files: offloaded, answered on the loop, unless it was cancelled.

When retention takes a file away while it is read, the question is asked again, from what is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hubweir.env import Env, Result
from hubweir.errors import StoreError
from hubweir.messaging_store.log import Pending, Refused

Raw = TypeVar("Raw")
Answer = TypeVar("Answer")


class PendingRead:
    """See Pending."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


def read_away(
    env: Env,
    log_id: str,
    call: Callable[[], Raw],
    answer: Callable[[Raw], Answer | Refused],
    on_done: Callable[[Answer | Refused], None],
    again: Callable[[], Answer | Pending],
) -> Pending:
    """Run call away from the loop, and on_done with what answer makes of its result, or with Refused."""
    pending = PendingRead()

    def done(result: Result[Raw]) -> None:
        if pending.cancelled:
            return
        value: Answer | Refused
        try:
            value = answer(result.value())
        except FileNotFoundError:
            outcome = again()
            if not isinstance(outcome, PendingRead):
                on_done(outcome)  # type: ignore[arg-type]  # not pending, so an answer
            return
        except StoreError as error:
            value = Refused(error)
        except OSError as error:
            value = Refused(StoreError(f"log {log_id}: cannot be read: {error}"))
        on_done(value)

    env.offload(call, done)
    return pending
