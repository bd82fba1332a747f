"""Checks duplicate detection: of two messages with one id that were stored within the window, one may be there (P11).

When a message was stored is known by two moments: its send began before, and somebody was told of it behind. Two
lie within the window for certain when all four moments do. Nothing is said of ids that are kept for longer.
"""

from __future__ import annotations

from hubweir.testing.history_values import SeenMessage, SeenPlace, Violation


class DuplicateHistory:
    """Of one queue or topic. now_ms of its history must not run faster than the service's own clock."""

    def __init__(self, window_ms: int) -> None:
        self._window_ms = window_ms
        self._sent: dict[str, list[SeenMessage]] = {}  # by message id
        self._seen: dict[str, list[SeenMessage]] = {}

    def enter(self, sent: SeenMessage) -> None:
        """It is about to be sent."""
        if sent.message_id is not None:
            self._sent.setdefault(sent.message_id, []).append(sent)

    def seen(self, sent: SeenMessage) -> None:
        """It was seen for the first time."""
        if sent.message_id is None:
            return
        others = self._seen.setdefault(sent.message_id, [])
        for other in others:
            first_ms = min(sent.began_ms, other.began_ms)
            if max(sent.stored_by_ms, other.stored_by_ms) - first_ms < self._window_ms:
                raise Violation(
                    f"P11: {sent.text} and {other.text} have the id {sent.message_id} and are both there, "
                    f"{abs(sent.began_ms - other.began_ms)} ms apart"
                )
        others.append(sent)

    def may_be_dropped(self, sent: SeenMessage) -> bool:
        """Of one that was not seen: whether another was there for it, or is missed in its place."""
        return any(
            _was_there(other) or (other.accepted and other.order < sent.order)
            for other in self._sent.get(sent.message_id or "", ())
            if other is not sent and other.began_ms <= sent.stored_by_ms
        )


def _was_there(sent: SeenMessage) -> bool:
    return sent.is_seen or sent.may_be_gone or sent.may_expire or sent.place is SeenPlace.GONE
