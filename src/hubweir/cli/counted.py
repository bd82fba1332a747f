"""Counts for people: a number and its noun, whose plural ends in s."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Such as "1 log" or "4 logs"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
