import pytest

from hubweir.broker.refusals import CONDITION_OF, refusal_of
from hubweir.errors import ARGUMENT_ERROR, DiskFull, ServiceError, StoreError


def test_the_special_class_comes_before_its_parent() -> None:
    for at, (kind, _) in enumerate(CONDITION_OF):
        assert not any(issubclass(kind, earlier) for earlier, _ in CONDITION_OF[:at])


@pytest.mark.parametrize(
    ("error", "symbol"),
    [
        (ServiceError(ARGUMENT_ERROR, "text"), "com.microsoft:argument-error"),
        (DiskFull("text"), "amqp:resource-limit-exceeded"),
        (StoreError("text"), "amqp:internal-error"),
    ],
)
def test_an_error_becomes_its_condition_with_its_text(error: StoreError, symbol: str) -> None:
    refusal = refusal_of(error, known=False)
    assert (refusal.symbol, refusal.text, refusal.known) == (symbol, "text", False)
