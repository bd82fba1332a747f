"""Notices: a page says what was done before it. An address carries the name of a notice, never its text."""

from __future__ import annotations

_DIGITS_LIMIT = 9
NOTICES = {
    "created": "It is created.",
    "changed": "The settings are saved.",
    "deleted": "It is deleted.",
    "group-added": "The consumer group is created.",
    "group-deleted": "The consumer group is deleted.",
    "filter-saved": "The filter is saved.",
    "filter-deleted": "The filter is deleted.",
    "scaled": "The throughput units are saved.",
    "policy-created": "The policy is created. Open it for its keys.",
    "policy-deleted": "The policy is deleted.",
    "dead-lettered": "{count} moved to the dead letters.",
    "resubmitted": "{count} sent again.",
    "purged": "{count} deleted.",
    "signed-out": "You are signed out.",
    "ended": "Your session is over: it was idle for too long, or its key was renewed. Sign in again.",
}


def notice_text(name: str, count: str = "") -> str:
    """The sentence of a notice; "" for a name that nobody gave. count: of what was done, where it tells one."""
    is_number = count.isascii() and count.isdigit() and len(count) <= _DIGITS_LIMIT
    return NOTICES.get(name, "").format(count=int(count) if is_number else "An unknown number")
