"""What a page says was done before it. An address carries the name of a notice, never its text."""

from __future__ import annotations

NOTICES = {
    "created": "It is created.",
    "changed": "The settings are saved.",
    "deleted": "It is deleted.",
    "group-added": "The consumer group is created.",
    "group-deleted": "The consumer group is deleted.",
    "scaled": "The throughput units are saved.",
    "policy-created": "The policy is created. Open it for its keys.",
    "policy-deleted": "The policy is deleted.",
    "signed-out": "You are signed out.",
    "ended": "Your session is over: it was idle for too long, or its key was renewed. Sign in again.",
}


def notice_text(name: str) -> str:
    """The sentence of a notice; "" for a name that nobody gave."""
    return NOTICES.get(name, "")
