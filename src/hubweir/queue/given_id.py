"""The id that a message gets which came without one: digits of its log's id, then 16 of the number that it got first.

Kernels write it where a message goes out (kernels/contract.py). Here it is for records that are written anew, and for
the rules of topics, so that everybody sees the same id.
"""

from __future__ import annotations

_PREFIX_DIGITS = 16


def id_prefix_of(log_id: str) -> str:
    """What the given ids of a log's messages begin with. log_id: of a subscription its topic's."""
    return log_id[:_PREFIX_DIGITS]


def given_id(id_prefix: str, number: int) -> str:
    """number: as in Q_ID_NUMBER."""
    return f"{id_prefix}{number:016x}"
