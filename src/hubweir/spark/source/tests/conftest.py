"""The fixtures of the whole folder (spark/tests/conftest.py)."""

from __future__ import annotations

from hubweir.spark.tests.conftest import (
    client_of,
    closed_clients,
    collect_ignore_glob,
    namespace,
    new_hub,
    options_of,
    start_server,
)

__all__ = ["client_of", "closed_clients", "collect_ignore_glob", "namespace", "new_hub", "options_of", "start_server"]
