import pytest

from hubweir.broker.refusals import CONDITION_OF, refusal_of
from hubweir.errors import ARGUMENT_ERROR, DiskFull, LogOffline, OutOfFiles, ServiceError, StoreError


def test_the_special_class_comes_before_its_parent() -> None:
    for at, (kind, _) in enumerate(CONDITION_OF):
        assert not any(issubclass(kind, earlier) for earlier, _ in CONDITION_OF[:at])


@pytest.mark.parametrize(
    ("error", "symbol"),
    [
        (ServiceError(ARGUMENT_ERROR, "text"), "com.microsoft:argument-error"),
        (DiskFull("text"), "com.microsoft:server-busy"),
        (OutOfFiles("text"), "com.microsoft:server-busy"),
        (LogOffline("text"), "com.microsoft:server-busy"),
        (StoreError("text"), "amqp:internal-error"),
    ],
)
def test_an_error_becomes_its_condition_with_its_text(error: StoreError, symbol: str) -> None:
    refusal = refusal_of(error, known=False)
    assert (refusal.condition.symbol, refusal.text, refusal.known) == (symbol, "text", False)


# Conditions that JavaScript, .NET, Java and Go each try again by themselves, in place or on a new link.
RETRIED_BY_ALL = {"com.microsoft:server-busy", "com.microsoft:timeout"}


@pytest.mark.parametrize("kind", [DiskFull, OutOfFiles, LogOffline])
def test_what_heals_by_itself_is_refused_as_every_official_client_tries_again(kind: type[StoreError]) -> None:
    assert refusal_of(kind("text")).condition.symbol in RETRIED_BY_ALL
