from dataclasses import replace

from hubweir.event_hub.producer_state import ID_LIMIT
from hubweir.spark.sink.producer_ids import Work, producer_id

WORK = Work("query", 7, 3)


def test_the_same_work_has_the_same_producer_in_every_process() -> None:
    assert producer_id(WORK, "0") == 7258640798947298721
    assert producer_id(replace(WORK, round=8, attempt=2), "0") == producer_id(WORK, "0")


def test_query_task_and_partition_make_another() -> None:
    others = [
        producer_id(WORK, "1"),
        producer_id(replace(WORK, task=4), "0"),
        producer_id(replace(WORK, query="other"), "0"),
        producer_id(Work("query", 7, 31), ""),
    ]
    assert len({producer_id(WORK, "0"), *others}) == 5 and all(0 <= each <= ID_LIMIT for each in others)
