"""The bench of the whole folder (messaging_store/tests/conftest.py)."""

from __future__ import annotations

from hubweir.messaging_store.tests.conftest import bench, make_bench, make_events, read_messages, relaxed

__all__ = ["bench", "make_bench", "make_events", "read_messages", "relaxed"]
