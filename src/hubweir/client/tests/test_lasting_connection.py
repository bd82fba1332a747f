"""The connection that is open, opened anew where it ended, and steps that are tried again on it."""

from collections.abc import Callable

import pytest

from hubweir.client.connection import Connection
from hubweir.client.lasting_connection import LastingConnection
from hubweir.client.retry import RetryPolicy
from hubweir.errors import CONNECTION_FORCED, ILLEGAL_STATE, NOT_FOUND, SERVER_BUSY, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.held_ports import HeldPorts
from hubweir.testing.running_namespace import RunningNamespace

QUICK = RetryPolicy(attempts=3, first_s=0.01, longest_s=0.01)


def lasting(text: str) -> LastingConnection:
    return LastingConnection(ConnectionString.parse(text), "this one", tls=None, retry=QUICK, timeout_s=10)


def test_a_connection_that_ended_is_opened_again_with_a_management_of_its_own(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        shared = lasting(namespace.connection_string())
        first = await shared.now()
        management = shared.management(first)
        assert await shared.now() is first and shared.management(first) is management
        await first.close()
        second = await shared.now()
        assert second is not first and shared.management(second) is not management
        assert (await shared.management(second).hub(hub)).name == hub
        await shared.close()

    run_on("asyncio", scenario())


def test_a_service_that_is_not_there_is_tried_as_often_as_the_policy_says(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0
    opened = Connection.open

    async def counted(target: ConnectionString, **options: object) -> Connection:
        nonlocal tries
        tries += 1
        return await opened(target, **options)  # type: ignore[arg-type]

    async def step(connection: Connection) -> None:
        raise AssertionError("there is no connection")

    monkeypatch.setattr(Connection, "open", counted)

    async def scenario() -> None:
        held = HeldPorts()
        shared = lasting(f"Endpoint=sb://127.0.0.1:{held.numbers[0]};UseDevelopmentEmulator=true")
        with pytest.raises(ServiceError) as gone:
            await shared.retried(step)
        assert gone.value.condition is CONNECTION_FORCED
        assert tries == QUICK.attempts

    run_on("asyncio", scenario())


def test_a_step_is_tried_again_until_it_succeeds_or_ends_with_what_no_retry_cures(namespace: RunningNamespace) -> None:
    class Final(ServiceError):
        """Retriable, and not to be tried again."""

    async def outcome(shared: LastingConnection, *errors: ServiceError) -> tuple[str, int]:
        ahead = list(errors)

        async def step(connection: Connection) -> str:
            if ahead:
                raise ahead.pop(0)
            return "done"

        try:
            said = await shared.retried(step, final=(Final,))
        except ServiceError as error:
            said = error.text
        return said, len(ahead)

    async def scenario() -> None:
        busy, missing = ServiceError(SERVER_BUSY, "busy"), ServiceError(NOT_FOUND, "missing")
        shared = lasting(namespace.connection_string())
        assert await outcome(shared, busy, busy) == ("done", 0)
        assert await outcome(shared, busy, busy, busy, busy) == ("busy", 1)
        assert await outcome(shared, missing, busy) == ("missing", 1)
        assert await outcome(shared, Final(SERVER_BUSY, "final"), busy) == ("final", 1)
        await shared.close()

    run_on("asyncio", scenario())


def test_one_that_was_closed_opens_nothing_any_more(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        shared = lasting(namespace.connection_string())
        connection = await shared.now()
        await shared.close()
        await shared.close()
        assert connection.error is not None
        with pytest.raises(ServiceError, match="this one is closed") as refused:
            await shared.now()
        assert refused.value.condition is ILLEGAL_STATE

    run_on("asyncio", scenario())
