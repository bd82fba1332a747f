"""What every store of ours does, as plain calls and as coroutines."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hubweir.client.checkpoint_store import (
    BlockingCheckpointStore,
    Record,
    ThreadedCheckpointStore,
    as_checkpoint_store,
)
from hubweir.client.memory_checkpoint_store import BlockingMemoryCheckpointStore, MemoryCheckpointStore
from hubweir.client.partition_context import GroupName
from hubweir.client.sqlite_checkpoint_store import BlockingSqliteCheckpointStore, SqliteCheckpointStore

NAME = GroupName("Namespace:5672", "Hub", "$Default")
GROUP = ("Namespace:5672", "Hub", "$Default")


class Clock:
    now_s = 1_000.25

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    if request.param == "memory":
        yield BlockingMemoryCheckpointStore(Clock())
    else:
        with BlockingSqliteCheckpointStore(tmp_path / "group.db", now_s=Clock()) as made:
            yield made


def claim(store: BlockingCheckpointStore, owner_id: str, etag: str | None = None, partition: str = "0") -> list[Record]:
    more = {} if etag is None else {"etag": etag}
    return list(store.claim_ownership([NAME.record(partition, owner_id=owner_id, **more)]))


def test_claim_is_given_back_with_a_new_etag_and_the_time(store: BlockingCheckpointStore) -> None:
    (first,) = claim(store, "a")
    assert first == NAME.record("0", owner_id="a", etag=first["etag"], last_modified_time=1_000.25)
    (second,) = claim(store, "a", first["etag"])
    assert second["etag"] != first["etag"]
    assert list(store.list_ownership(*GROUP)) == [second]


def test_claim_with_another_etag_or_none_writes_nothing(store: BlockingCheckpointStore) -> None:
    (held,) = claim(store, "a")
    assert claim(store, "b") == []
    assert claim(store, "b", "something else") == []
    assert claim(store, "b", "something else", partition="7") == []  # never held: there is no such etag
    assert list(store.list_ownership(*GROUP)) == [held]


def test_of_many_claims_those_that_can_be_are_written(store: BlockingCheckpointStore) -> None:
    claim(store, "a", partition="1")
    got = list(store.claim_ownership([NAME.record(each, owner_id="b") for each in ("0", "1", "2")]))
    assert [record["partition_id"] for record in got] == ["0", "2"]


def test_lease_is_given_up_with_an_empty_owner(store: BlockingCheckpointStore) -> None:
    (held,) = claim(store, "a")
    (freed,) = store.claim_ownership([{**held, "owner_id": ""}])
    assert freed["owner_id"] == ""
    assert claim(store, "b", freed["etag"])[0]["owner_id"] == "b"


def test_last_checkpoint_counts(store: BlockingCheckpointStore) -> None:
    assert list(store.list_checkpoints(*GROUP)) == []
    for number in (7, 9, 8):
        store.update_checkpoint(NAME.record("0", offset=str(number * 100), sequence_number=number))
    assert list(store.list_checkpoints(*GROUP)) == [NAME.record("0", offset="800", sequence_number=8)]


def test_names_are_compared_without_case_and_come_back_as_asked(store: BlockingCheckpointStore) -> None:
    (held,) = claim(store, "a")
    store.update_checkpoint(NAME.record("0", offset="1", sequence_number=1))
    asked = ("NAMESPACE:5672", "hub", "$default")
    (found,) = store.list_ownership(*asked)
    assert found == {**held, **dict(zip(list(found)[:3], asked, strict=True))}
    other = GroupName(*asked)
    assert list(store.claim_ownership([other.record("0", owner_id="b")])) == []
    store.update_checkpoint(other.record("0", offset="2", sequence_number=2))
    (mark,) = store.list_checkpoints(*GROUP)
    assert mark["sequence_number"] == 2


def test_groups_do_not_see_each_other(store: BlockingCheckpointStore) -> None:
    claim(store, "a")
    store.update_checkpoint(NAME.record("0", offset="1", sequence_number=1))
    for other in (("x", "Hub", "$Default"), ("Namespace:5672", "x", "$Default"), ("Namespace:5672", "Hub", "x")):
        assert list(store.list_ownership(*other)) == []
        assert list(store.list_checkpoints(*other)) == []


def test_options_of_foreign_stores_are_taken_and_ignored(store: BlockingCheckpointStore) -> None:
    store.update_checkpoint(NAME.record("0", offset="1", sequence_number=1), timeout=5)
    assert list(store.list_ownership(*GROUP, timeout=5)) == []


@pytest.mark.parametrize(
    "make", [lambda path: MemoryCheckpointStore(), lambda path: SqliteCheckpointStore(path / "g.db")]
)
def test_coroutines_do_the_same(make: Callable[[Path], ThreadedCheckpointStore], tmp_path: Path) -> None:
    async def scenario() -> None:
        async with make(tmp_path) as store:
            assert as_checkpoint_store(store) is store
            await asyncio.gather(*(store.claim_ownership([NAME.record(str(each), owner_id="a")]) for each in range(20)))
            assert len(list(await store.list_ownership(*GROUP))) == 20
            await store.update_checkpoint(NAME.record("0", offset="1", sequence_number=1))
            assert len(list(await store.list_checkpoints(*GROUP))) == 1
        await store.close()

    asyncio.run(scenario())


def test_plain_store_is_put_on_a_thread() -> None:
    class Watched(BlockingMemoryCheckpointStore):
        def list_ownership(self, *group: str, **kwargs: Any) -> list[Record]:
            assert threading.current_thread() is not threading.main_thread()
            return super().list_ownership(*group, **kwargs)

    async def scenario() -> None:
        store = as_checkpoint_store(Watched())
        assert list(await store.list_ownership(*GROUP)) == []

    asyncio.run(scenario())
