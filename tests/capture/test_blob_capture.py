"""Capture to a storage account: a real Azurite, gone in the middle and back, read by a standard Avro reader."""

from __future__ import annotations

import asyncio
import io
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import fastavro
import obstore
import pytest
from obstore.store import AzureStore

from hubweir.broker.capture.blob_upload import BlobContainer, BlobFailure, StorageAccount, parse_storage
from hubweir.client.connection import Connection
from hubweir.client.management import Management
from hubweir.client.sender import Sender
from hubweir.namespace.capture_description import CaptureDescription, CaptureDestination
from hubweir.namespace.connection_string import ConnectionString
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.capture.azurite import ACCOUNT, INSTALL_S, KEY, Azurite, azurite

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(INSTALL_S + 120)]

CONTAINER = "films"
TO_BLOBS = CaptureDescription(
    enabled=True, interval_s=900, size_limit_bytes=10_485_760, destination=CaptureDestination.AZURE_BLOCK_BLOB,
    container=CONTAINER, storage_account=f"/subscriptions/s/providers/Microsoft.Storage/storageAccounts/{ACCOUNT}",
)  # fmt: skip


@pytest.fixture(scope="module")
def one_account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with azurite(tmp_path_factory.mktemp("azurite") / "data") as made:
        yield made


@pytest.fixture
def account(one_account: Azurite) -> Iterator[Azurite]:
    """With one empty container. It may be the account of all tests, as each one's container goes with its blobs."""
    one_account.make_container(CONTAINER)
    yield one_account
    one_account.remove_container(CONTAINER)


def store_of(account: Azurite) -> AzureStore:
    return AzureStore(
        CONTAINER, account_name=ACCOUNT, account_key=KEY, endpoint=account.endpoint, client_options={"allow_http": True}
    )


def records(account: Azurite) -> list[list[dict[str, Any]]]:
    """What a standard reader finds in the blobs, in the order of their names."""
    store = store_of(account)
    paths = sorted(found["path"] for page in obstore.list(store) for found in page)
    return [list(fastavro.reader(io.BytesIO(obstore.get(store, path).bytes()))) for path in paths]


def publish(namespace: RunningNamespace, hub: str, batches: int) -> None:
    """Large events, several megabytes in all."""

    async def send() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        sender = await Sender.open(connection, f"{hub}/Partitions/0")
        for _ in range(batches):
            batch = sender.batch()
            while batch.try_add(b"x" * 100_000):
                pass
            await sender.submit(batch)
        await connection.close()

    asyncio.run(send())


def state_of(namespace: RunningNamespace, hub: str) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        try:
            return await Management(connection).capture_state(hub, "0")
        finally:
            await connection.close()

    return asyncio.run(ask())


def move_capture(namespace: RunningNamespace, hub: str, container: str) -> None:
    async def change() -> None:
        connection = await Connection.open(ConnectionString.parse(namespace.connection_string()))
        try:
            await Management(connection).change_hub(hub, capture={"container": container})
        finally:
            await connection.close()

    asyncio.run(change())


def until(holds: Callable[[], bool], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"it does not come within {seconds} s"
        time.sleep(0.1)


def test_blobs_hold_every_event_once_though_the_account_went_away(account: Azurite) -> None:
    with running_namespace(capture_storage=account.connection_string) as namespace:
        namespace.create_event_hub("blobbed", capture=TO_BLOBS)
        publish(namespace, "blobbed", 25)
        until(lambda: state_of(namespace, "blobbed")["files"] == 2)
        account.stop()
        publish(namespace, "blobbed", 25)
        until(lambda: state_of(namespace, "blobbed")["failure"] != "")
        away = state_of(namespace, "blobbed")
        assert away["files"] == 2 and away["behind_events"] > 200
        assert any("partition 0 of blobbed" in alarm.about for alarm in namespace.service.alarms.current())
        account.start()
        until(lambda: state_of(namespace, "blobbed")["files"] == 4)
        back = state_of(namespace, "blobbed")
        assert (back["failure"], back["uncaptured_events"]) == ("", 0)
    files = records(account)
    numbers = [record["SequenceNumber"] for file in files for record in file]
    assert numbers == list(range(back["next_sequence_number"]))
    assert len(files) == 4


def test_a_container_that_is_missing_is_told_by_its_name(account: Azurite) -> None:
    container = BlobContainer(parse_storage(account.connection_string), "nowhere")
    archive = container.begin("a/b.avro")
    with pytest.raises(BlobFailure, match="ContainerNotFound"):
        archive.write([b"x"])
        archive.commit()
    with pytest.raises(BlobFailure, match="ContainerNotFound"):
        container.exists("a/b.avro")


def test_a_container_that_was_misspelt_is_mended_by_its_right_name_and_nothing_is_lost(account: Azurite) -> None:
    misspelt = replace(TO_BLOBS, container="flims")
    with running_namespace(capture_storage=account.connection_string) as namespace:
        namespace.create_event_hub("misspelt", capture=misspelt)
        publish(namespace, "misspelt", 25)
        until(lambda: "ContainerNotFound" in state_of(namespace, "misspelt")["failure"])
        move_capture(namespace, "misspelt", CONTAINER)
        until(lambda: state_of(namespace, "misspelt")["files"] == 2)
        state = state_of(namespace, "misspelt")
        assert (state["failure"], state["uncaptured_events"]) == ("", 0)
    numbers = [record["SequenceNumber"] for file in records(account) for record in file]
    assert numbers == list(range(state["next_sequence_number"]))


def test_a_blob_is_there_when_it_is_committed_and_not_before(account: Azurite) -> None:
    container = BlobContainer(parse_storage(account.connection_string), CONTAINER)
    archive = container.begin("a/b.avro")
    archive.write([b"x" * 20_000_000, bytearray(b"y")])
    assert not container.exists("a/b.avro")
    archive.commit()
    assert container.exists("a/b.avro")
    given_up = container.begin("a/c.avro")
    given_up.write([b"x" * 20_000_000])
    given_up.abandon()
    assert not container.exists("a/c.avro")
    again = container.begin("a/b.avro")
    again.write([b"z"])
    again.commit()
    assert obstore.get(store_of(account), "a/b.avro").bytes() == b"z"


def test_a_wrong_key_is_a_failure_and_no_answer(account: Azurite) -> None:
    container = BlobContainer(StorageAccount(ACCOUNT, account.endpoint, "AAAA", ""), CONTAINER)
    with pytest.raises(BlobFailure, match="403"):
        container.exists("a")


def test_of_many_that_want_a_name_at_once_one_has_it_and_nobody_when_its_file_is_there(account: Azurite) -> None:
    containers = [BlobContainer(parse_storage(account.connection_string), CONTAINER) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        for number in range(5):
            won = list(threads.map(lambda container, name=f"a/{number}.avro": container.claim(name), containers))
            assert won.count(True) == 1
    one, another = containers[:2]
    one.release("a/0.avro")
    one.release("a/0.avro")
    assert another.claim("a/0.avro")
    archive = another.begin("a/0.avro")
    archive.commit()
    another.release("a/0.avro")
    assert not one.claim("a/0.avro")
    there = {found["path"] for page in obstore.list(store_of(account)) for found in page}
    assert there == {"a/0.avro", *(f"a/{number}.avro.claim" for number in range(1, 5))}


def test_two_services_with_the_same_names_overwrite_nothing_of_one_another(account: Azurite) -> None:
    storage = account.connection_string
    with running_namespace(capture_storage=storage) as one, running_namespace(capture_storage=storage) as another:
        both = (one, another)
        for namespace in both:
            namespace.create_event_hub("shared", capture=TO_BLOBS)
        for _ in range(3):  # at the same time, so that windows end in the same seconds
            with ThreadPoolExecutor(2) as threads:
                list(threads.map(lambda namespace: publish(namespace, "shared", 25), both))
        until(lambda: all(state_of(namespace, "shared")["behind_bytes"] < 10_485_760 for namespace in both))
        states = [state_of(namespace, "shared") for namespace in both]
    files = records(account)  # and so there is no claim left: it would be no Avro file
    assert len(files) == sum(state["files"] for state in states) > 8
    numbers = sorted(record["SequenceNumber"] for file in files for record in file)
    ends = [state["next_sequence_number"] for state in states]
    assert numbers == sorted([*range(ends[0]), *range(ends[1])])


def test_a_signature_that_may_not_delete_leaves_no_claims_and_is_told_when_capture_is_enabled(account: Azurite) -> None:
    with running_namespace(capture_storage=account.signed("rcwl")) as namespace:
        namespace.create_event_hub("signed", capture=TO_BLOBS)
        until(lambda: "the right to delete" in state_of(namespace, "signed")["failure"])
        assert any("partition 0 of signed" in alarm.about for alarm in namespace.service.alarms.current())
        publish(namespace, "signed", 25)
        until(lambda: namespace.service.counters["capture.failures"] > 2)
        assert state_of(namespace, "signed")["files"] == 0
    assert records(account) == []


@pytest.mark.parametrize("rights", ["rcwd", "rcwdl"])
def test_a_signature_that_may_delete_captures_and_leaves_nothing_but_files(account: Azurite, rights: str) -> None:
    with running_namespace(capture_storage=account.signed(rights)) as namespace:
        namespace.create_event_hub("signed", capture=TO_BLOBS)
        publish(namespace, "signed", 25)
        until(lambda: state_of(namespace, "signed")["files"] == 2)
        state = state_of(namespace, "signed")
        assert (state["failure"], namespace.service.counters["capture.failures"]) == ("", 0)
    numbers = [record["SequenceNumber"] for file in records(account) for record in file]  # a claim is no Avro file
    assert numbers == list(range(state["next_sequence_number"]))


def test_a_name_whose_file_is_there_is_passed_over_though_nothing_can_be_removed(
    account: Azurite, caplog: pytest.LogCaptureFixture
) -> None:
    """The right was taken away since capture began: its own claim stays, and is told by the next name."""
    may_delete = BlobContainer(parse_storage(account.signed("rcwdl")), CONTAINER)
    container = BlobContainer(parse_storage(account.signed("rcwl")), CONTAINER)
    container._is_checked = True
    may_delete.begin("a/b.avro").commit()
    assert not container.claim("a/b.avro")
    for _ in range(3):
        with pytest.raises(BlobFailure, match="the right to delete"):
            container.claim("a/c.avro")
    there = {found["path"] for page in obstore.list(store_of(account)) for found in page}
    assert there == {"a/b.avro", "a/b.avro.claim"}
    with pytest.raises(OSError):
        container.release("a/b.avro")
    [told] = [record.message for record in caplog.records if record.name == "hubweir.broker.capture.blob_upload"]
    assert told.startswith("the claim a/b.avro.claim stays in the container: removing a blob: 403")


def test_a_container_that_is_missing_is_told_when_capture_is_enabled(account: Azurite) -> None:
    with running_namespace(capture_storage=account.connection_string) as namespace:
        namespace.create_event_hub("early", capture=replace(TO_BLOBS, container="flims"))
        until(lambda: "ContainerNotFound" in state_of(namespace, "early")["failure"])
