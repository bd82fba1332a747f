import logging
from types import SimpleNamespace
from typing import Any

import pytest

from hubweir.spark.errors import IllegalOption
from hubweir.spark.sessions.registration import register

REDACTION = "spark.sql.redaction.options.regex"


class Session:
    """What register touches of a session, with a memory."""

    def __init__(self, version: str, **settings: str) -> None:
        self.version = version
        self.sources: list[str] = []
        self.settings = settings
        self.dataSource = SimpleNamespace(register=lambda source: self.sources.append(source.name()))
        self.conf = SimpleNamespace(get=self.settings.get, set=self.settings.__setitem__)


def registered(session: Any) -> Any:
    register(session)
    return session


def test_both_formats_are_known_and_secrets_stay_out_of_plans() -> None:
    session = registered(Session("4.3.0", **{REDACTION: "(?i)url"}))
    assert session.sources == ["eventhubs", "eventhubs-capture"]
    once = session.settings[REDACTION]
    assert once.startswith("(?i)url|") and "connectionstring" in once
    assert registered(session).settings[REDACTION] == once


def test_old_spark_is_refused() -> None:
    with pytest.raises(IllegalOption, match=r"Spark 4\.1\.2, and event hubs need 4\.2"):
        registered(Session("4.1.2"))


def test_slow_setting_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        registered(Session("4.3.0"))
        registered(Session("4.3.0", **{"spark.python.unix.domain.socket.enabled": "true"}))
    assert len(caplog.records) == 1 and "40 ms" in caplog.text
