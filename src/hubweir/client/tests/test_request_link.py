import asyncio
import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from hubweir.amqp.messaging.message import Message, ValueBody
from hubweir.client.connection import Connection
from hubweir.client.connection_tokens import status_of
from hubweir.client.management import Management
from hubweir.client.request_link import RequestLink
from hubweir.errors import CONNECTION_FORCED, NOT_FOUND, TIMED_OUT, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from hubweir.testing.server_process import ServerProcess

ASKED = {"operation": "READ", "type": "com.microsoft:eventhub", "name": "none"}
QUESTION = Message(application_properties=ASKED, body=ValueBody(None))


def test_more_requests_than_credit_are_all_answered_each_with_its_own_answer(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        await connection.authorization.authorize("")
        link = RequestLink(connection, "$management")
        await link.ready(5)
        names = [f"none-{number}" for number in range(350)]
        answers = await asyncio.gather(
            *(
                link.call(
                    Message(application_properties={**QUESTION.application_properties, "name": name}), timeout_s=10
                )
                for name in names
            )
        )
        for name, answer in zip(names, answers, strict=True):
            status, text = status_of(answer)
            assert status == 404
            assert name in text
        await connection.close()

    run_on("asyncio", scenario())


def test_node_that_does_not_exist_refuses_the_links(namespace: RunningNamespace) -> None:
    async def scenario() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        await connection.authorization.authorize("")
        link = RequestLink(connection, "$nonsense")
        with pytest.raises(ServiceError):
            await link.ready(5)
        assert link.error is not None
        with pytest.raises(ServiceError):
            await link.call(QUESTION, timeout_s=5)
        await connection.close()

    run_on("asyncio", scenario())


def test_server_that_hangs_is_timed_out_and_one_that_dies_fails_what_waits(tmp_path: Path) -> None:
    async def scenario(server: ServerProcess) -> None:
        connection = await Connection.open(ConnectionString.parse(server.connection_string()))
        await connection.authorization.authorize("")
        link = RequestLink(connection, "$management")
        await link.ready(5)
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        with pytest.raises(ServiceError, match=r"\$management gave no answer within 0\.2 s") as late:
            await link.call(QUESTION, timeout_s=0.2)
        assert late.value.condition is TIMED_OUT
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(_outcome(link))
            await asyncio.sleep(0)
            await asyncio.to_thread(server.kill9)
        assert waiting.result() is CONNECTION_FORCED
        await connection.close()

    with ServerProcess(tmp_path / "data") as server:
        run_on("asyncio", scenario(server))


async def _outcome(link: RequestLink) -> object:
    with pytest.raises(ServiceError) as failed:
        await link.call(QUESTION, timeout_s=10)
    return failed.value.condition


def test_pair_that_the_server_detached_is_made_anew() -> None:
    """Whatever a server detaches them for: management and authorization work again on the same connection."""

    async def detach_all(namespace: RunningNamespace) -> None:
        for host in namespace.service.gateway._connections.values():
            for node in host.nodes:
                host.detach(node, ServiceError(TIMED_OUT, "the test detaches every link"))

    async def scenario(namespace: RunningNamespace) -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        management = Management(connection)
        assert await management.list_hubs() == []
        link, cbs = management._link, connection.authorization._cbs
        assert link is not None and cbs is not None
        await asyncio.to_thread(lambda: namespace.run(detach_all(namespace)))
        async with asyncio.timeout(30):
            while link.error is None or cbs.error is None:
                await asyncio.sleep(0.02)
        assert connection.error is None
        assert await management.list_hubs() == []
        with pytest.raises(ServiceError) as missing:
            await management.hub("none")  # asks for a token, so over $cbs
        assert missing.value.condition is NOT_FOUND
        assert management._link is not link
        kinds = Counter(used.name.rpartition("-")[0] for used in connection._users)
        assert set(kinds.values()) == {1}, "nothing is left of the pairs before"
        await connection.close()

    with running_namespace() as namespace:
        run_on("asyncio", scenario(namespace))
