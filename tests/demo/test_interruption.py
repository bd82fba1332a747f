import os
import signal
from collections.abc import Iterator

import pytest

from demo.interruption import INTERRUPTED, unless_interrupted


@pytest.fixture
def listens_to_ctrl_c() -> Iterator[None]:
    """A job in the background ignores it, and so do its children."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_demo_ends_with_one_line_whatever_fails_on_its_way_out(
    capsys: pytest.CaptureFixture[str], listens_to_ctrl_c: None
) -> None:
    """As Spark's JVM does, which has got the same Ctrl-C."""

    def main() -> int:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            return 0
        finally:
            raise ConnectionError("the JVM is gone")

    assert unless_interrupted(main) == INTERRUPTED == 130
    assert capsys.readouterr().err == "\nstopped before the end: nothing is proved\n"


def test_without_an_interrupt_results_and_errors_go_through() -> None:
    def broken() -> int:
        raise ConnectionError("the JVM is gone")

    assert unless_interrupted(lambda: 1) == 1
    with pytest.raises(ConnectionError):
        unless_interrupted(broken)
