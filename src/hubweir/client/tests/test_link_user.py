import asyncio

import pytest

from hubweir.amqp.messaging.amqp_error import AmqpError
from hubweir.amqp.types.values import Symbol
from hubweir.client.link_user import LinkUser, service_error
from hubweir.errors import LINK_STOLEN, NOT_FOUND, ServiceError


def test_known_symbol_becomes_its_condition() -> None:
    error = service_error(
        AmqpError(condition=Symbol("amqp:not-found"), description="no hub"), "the attach of x was refused"
    )
    assert error.condition is NOT_FOUND
    assert error.text == "the attach of x was refused: no hub"


def test_foreign_symbol_is_kept() -> None:
    assert service_error(AmqpError(condition=Symbol("acme:odd")), "refused").condition.symbol == "acme:odd"


def test_error_without_a_reason_has_the_condition_that_the_caller_names() -> None:
    assert service_error(None, "gone", LINK_STOLEN).condition is LINK_STOLEN


def test_first_failure_of_a_link_is_the_one_that_is_kept() -> None:
    async def scenario() -> None:
        user = LinkUser("hub")
        user.fail(ServiceError(LINK_STOLEN, "first"))
        user.fail(ServiceError(NOT_FOUND, "second"))
        with pytest.raises(ServiceError, match="first"):
            await user.attached
        assert user.error is not None
        assert user.error.condition is LINK_STOLEN

    asyncio.run(scenario())
