from hubweir.client.memory_checkpoint_store import BlockingMemoryCheckpointStore
from hubweir.client.partition_context import GroupName

NAME = GroupName("namespace", "hub", "group")


def test_records_in_and_out_are_copies() -> None:
    store = BlockingMemoryCheckpointStore()
    given = NAME.record("0", owner_id="a")
    (claimed,) = store.claim_ownership([given])
    given["owner_id"] = claimed["owner_id"] = "changed"
    (listed,) = store.list_ownership("namespace", "hub", "group")
    assert listed["owner_id"] == "a"
    listed["owner_id"] = "changed"
    assert store.list_ownership("namespace", "hub", "group")[0]["owner_id"] == "a"
