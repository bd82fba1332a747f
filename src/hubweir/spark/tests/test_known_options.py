import logging

import pytest

from hubweir.spark import known_options
from hubweir.spark.known_options import check_names
from hubweir.spark.option_texts import OptionTexts


def test_options_of_the_jvm_connector_that_mean_nothing_are_warned_about_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_options, "_warned", set())
    texts = OptionTexts({"connectionString": "x", "eventhubs.threadPoolSize": "4", "maxSilentTime": "PT5M"})
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            check_names(texts)
    assert [record.getMessage() for record in caplog.records] == [
        "ignored, for they mean nothing to this source: maxSilentTime, threadPoolSize"
    ]
