"""What of running a pipeline needs no Spark: signals, and the line of an error that a person wants."""

from __future__ import annotations

import os
import signal

from hubweir.pipelines.runner import first_line, stop_signals

TRACEBACK = """[STREAM_FAILED] Query [id = 3, runId = 5] ended: [PYTHON_EXCEPTION] Traceback (most recent):
  File "/x/stream_reader.py", line 5, in partitions
    raise DataLoss(
hubweir.spark.errors.DataLoss: 30 events of partition 0 are missing: they were removed
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: x
org.apache.spark.Other: no
"""


def test_a_signal_is_remembered_and_the_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals() as is_over:
        assert not is_over()
        os.kill(os.getpid(), signal.SIGTERM)
        assert is_over()
    assert signal.getsignal(signal.SIGTERM) is before


def test_our_own_error_is_found_in_the_text_of_spark() -> None:
    assert first_line(RuntimeError(TRACEBACK)) == "30 events of partition 0 are missing: they were removed"


def test_other_errors_give_the_line_that_ends_their_traceback_or_their_first() -> None:
    other = TRACEBACK.replace("hubweir.spark.errors.DataLoss", "pyarrow.lib.ArrowInvalid")
    assert first_line(RuntimeError(other)).startswith("pyarrow.lib.ArrowInvalid: 30 events")
    other = TRACEBACK.replace("hubweir.spark.errors.DataLoss", "ImportError")
    assert first_line(RuntimeError(other)).startswith("ImportError: 30 events")
    assert first_line(ValueError("short\nlong")) == "short"
    assert first_line(ValueError()) == "ValueError"
