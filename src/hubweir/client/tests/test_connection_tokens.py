import asyncio
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

from hubweir.amqp.messaging.message import Message
from hubweir.auth.shared_access_signature import make_token
from hubweir.client import connection_tokens
from hubweir.client.connection import Connection
from hubweir.client.connection_tokens import status_of, token_for
from hubweir.client.management import Management
from hubweir.client.receiver import Receiver, address_of
from hubweir.client.sender import Sender
from hubweir.errors import ARGUMENT_ERROR, NOT_FOUND, UNAUTHORIZED, ServiceError
from hubweir.namespace.connection_string import ConnectionString
from hubweir.namespace.secret import Secret
from hubweir.testing.event_loops import run_on
from hubweir.testing.running_namespace import RunningNamespace


def target_of(namespace: RunningNamespace) -> ConnectionString:
    return ConnectionString.parse(namespace.connection_string())


def test_wrong_key_is_unauthorized(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(replace(target_of(namespace), key=Secret("not the key")))
        with pytest.raises(ServiceError) as refused:
            await Sender.open(connection, hub)
        assert refused.value.condition is UNAUTHORIZED
        assert "not the key" not in refused.value.text
        await connection.close()

    run_on("asyncio", scenario())


def test_missing_hub_is_not_found_and_the_connection_stays_usable(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        with pytest.raises(ServiceError) as refused:
            await Sender.open(connection, "no-such-hub")
        assert refused.value.condition is NOT_FOUND
        assert await (await Sender.open(connection, hub)).send([b"x"]) == 1
        await connection.close()

    run_on("asyncio", scenario())


def test_a_publisher_that_cannot_be_is_refused_once_and_not_tried_again(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub = new_hub()

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        with pytest.raises(ServiceError, match="300 characters; 128 are allowed") as refused:
            await Sender.open(connection, f"{hub}/Publishers/{'p' * 300}")
        assert not refused.value.condition.retriable
        await connection.close()

    run_on("asyncio", scenario())


def test_ready_made_signature_is_put_as_it_is(namespace: RunningNamespace, new_hub: Callable[..., str]) -> None:
    hub, whole = new_hub(), target_of(namespace)
    assert whole.key_name is not None and whole.key is not None
    token = make_token(f"sb://{whole.host}/{hub}", whole.key_name, whole.key, int(time.time()) + 60)
    bare = replace(whole, key_name=None, key=None, signature=token)

    async def scenario() -> None:
        connection = await Connection.open(bare)
        assert await (await Sender.open(connection, hub)).send([b"x"]) == 1
        with pytest.raises(ServiceError) as refused:
            await connection.authorization.authorize("")  # the token is for the hub only
        assert refused.value.condition is UNAUTHORIZED
        await connection.close()

    assert token_for(bare, "sb://other/", 0) == token
    run_on("asyncio", scenario())


@pytest.mark.parametrize("has_key", [True, False])
def test_one_token_serves_all_publishers_and_partitions_of_a_hub(
    namespace: RunningNamespace, new_hub: Callable[..., str], has_key: bool
) -> None:
    """A service takes ten a second when some hundreds were put, and has a limit for a connection."""
    hub, target = new_hub(partition_count=4), target_of(namespace)
    if not has_key:
        assert target.key_name is not None and target.key is not None
        token = make_token(f"sb://{target.host}/{hub}", target.key_name, target.key, int(time.time()) + 60)
        target = replace(target, key_name=None, key=None, signature=token)

    async def scenario() -> None:
        connection = await Connection.open(target)
        await Management(connection).hub(hub)
        for address in (*(f"{hub}/Publishers/device-{number}" for number in range(20)), f"{hub}/Partitions/3", hub):
            await (await Sender.open(connection, address)).send([b"x"])
        await Receiver.open(connection, address_of(hub, "$Default", "2"))
        assert list(connection.authorization._audiences) == [f"sb://{target.host}/{hub}"]
        await connection.close()

    run_on("asyncio", scenario())


def test_a_signature_for_a_part_of_a_hub_is_put_for_that(
    namespace: RunningNamespace, new_hub: Callable[..., str]
) -> None:
    hub, whole = new_hub(), target_of(namespace)
    assert whole.key_name is not None and whole.key is not None
    address = f"{hub}/Publishers/device-1"
    token = make_token(f"sb://{whole.host}/{address}", whole.key_name, whole.key, int(time.time()) + 60)

    async def scenario() -> None:
        connection = await Connection.open(replace(whole, key_name=None, key=None, signature=token))
        assert await (await Sender.open(connection, address)).send([b"x"]) == 1
        with pytest.raises(ServiceError):
            await Sender.open(connection, f"{hub}/Publishers/device-2")
        await connection.close()

    run_on("asyncio", scenario())


def test_connection_string_without_any_proof_says_what_is_missing() -> None:
    with pytest.raises(ServiceError, match="add SharedAccessKeyName and SharedAccessKey") as refused:
        token_for(ConnectionString(host="here"), "sb://here/hub", 0)
    assert refused.value.condition is ARGUMENT_ERROR


def test_tokens_are_put_again_before_they_end_and_soon_after_a_failure(
    namespace: RunningNamespace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Tokens are renewed every 0.2 s here. The key is wrong at the first renewal and right again for the next ones."""
    made: list[str] = []

    def recorded(uri: str, name: str, key: Secret | str, ends_s: int) -> str:
        made.append(key.reveal() if isinstance(key, Secret) else key)
        return make_token(uri, name, key, ends_s)

    monkeypatch.setattr(connection_tokens, "make_token", recorded)
    monkeypatch.setattr(connection_tokens, "TOKEN_LIFETIME_S", 2)
    monkeypatch.setattr(connection_tokens, "_REFRESH_AFTER", 0.1)
    monkeypatch.setattr(connection_tokens, "_RETRY_AFTER", 0.05)

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        tokens, right = connection.authorization, connection.target
        await connection.authorization.authorize("")
        tokens._target = replace(right, key=Secret("wrong"))
        async with asyncio.timeout(30):
            while "was not renewed" not in caplog.text:
                await asyncio.sleep(0.01)
            tokens._target = right
            while made[-1] == "wrong" or len(made) < 5:
                await asyncio.sleep(0.01)
        assert made[1] == "wrong"
        assert connection.error is None
        await connection.close()

    run_on("asyncio", scenario())


def test_a_token_that_is_refused_keeps_no_other_from_being_renewed(
    namespace: RunningNamespace, new_hub: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub of the first token is deleted meanwhile; that of the second is in use."""
    gone, used = new_hub(), new_hub()
    made: list[str] = []
    monkeypatch.setattr(connection_tokens, "make_token", lambda uri, *rest: made.append(uri) or make_token(uri, *rest))
    monkeypatch.setattr(connection_tokens, "TOKEN_LIFETIME_S", 2)
    monkeypatch.setattr(connection_tokens, "_REFRESH_AFTER", 0.1)
    monkeypatch.setattr(connection_tokens, "_RETRY_AFTER", 0.05)

    async def scenario() -> None:
        connection = await Connection.open(target_of(namespace))
        for hub in (gone, used):
            await connection.authorization.authorize(hub)
        await asyncio.to_thread(namespace.delete_event_hub, gone)
        made.clear()
        async with asyncio.timeout(30):
            while [uri.rpartition("/")[2] for uri in made].count(used) < 3:
                await asyncio.sleep(0.01)
        await connection.close()

    run_on("asyncio", scenario())


def test_answer_without_a_status_counts_as_a_fault_of_the_service() -> None:
    assert status_of(Message()) == (500, "")
    assert status_of(Message(application_properties={"status-code": "200"})) == (500, "")
    assert status_of(Message(application_properties={"status-code": 202, "status-description": "Accepted"})) == (
        202,
        "Accepted",
    )
