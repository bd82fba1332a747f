import pickle

from hubweir.spark.offsets import EventRange
from hubweir.spark.range_partition import RangePartition


def test_task_travels_small_and_says_what_it_reads() -> None:
    task = RangePartition((EventRange("0", 5, 9), EventRange("3", 0, 2)))
    again = pickle.loads(pickle.dumps(task))
    assert again.ranges == task.ranges
    assert repr(again) == "RangePartition(0: 5…9, 3: 0…2)"
    assert len(pickle.dumps(task)) < 300
