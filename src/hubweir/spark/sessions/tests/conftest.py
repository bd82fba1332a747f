"""What leaves these tests out where the extra [spark] is not installed (spark/tests/conftest.py)."""

from __future__ import annotations

from hubweir.spark.tests.conftest import collect_ignore_glob

__all__ = ["collect_ignore_glob"]
