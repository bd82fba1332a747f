"""hubweir broker against a service of one process; with several it is tests/crash/test_broker_kill.py."""

import pytest

from hubweir.cli.tests.typed_commands import Typed
from hubweir.errors import NOT_IMPLEMENTED, ServiceError


@pytest.mark.parametrize(
    "words", [("list",), ("stop", "0"), ("start", "0"), ("kill", "1"), ("stall", "1"), ("away", "0")]
)
def test_a_service_of_one_process_says_so(type_command: Typed, words: tuple[str, ...]) -> None:
    refused = type_command("broker", *words)
    assert isinstance(refused.exception, ServiceError)
    assert refused.exception.condition is NOT_IMPLEMENTED
    assert "`hubweir serve --brokers N` or `--stores N` has several" in refused.exception.text


def test_a_number_is_needed(type_command: Typed) -> None:
    assert type_command("broker", "kill").exit_code == 2
    assert type_command("broker", "kill", "-1").exit_code == 2
