import pickle

import pytest

from hubweir.errors import HubweirError
from hubweir.spark import errors

NAMED = [each for each in vars(errors).values() if isinstance(each, type) and each.__module__ == errors.__name__]


def test_there_is_one_for_each_thing_that_goes_wrong() -> None:
    assert {each.__name__ for each in NAMED} == {
        "IllegalOption",
        "IllegalOffset",
        "DataLoss",
        "IllegalCapture",
        "IllegalRow",
        "ChangedRepeat",
        "NotExactlyOnce",
    }


@pytest.mark.parametrize("error", NAMED, ids=lambda each: each.__name__)
def test_each_is_told_apart_and_caught_as_ours(error: type[HubweirError]) -> None:
    """None is a kind of another: who catches DataLoss does not catch a misspelt option."""
    assert error.__bases__ == (HubweirError,) and error.__doc__


@pytest.mark.parametrize("error", NAMED, ids=lambda each: each.__name__)
def test_each_travels_from_a_task_with_its_text(error: type[HubweirError]) -> None:
    made = pickle.loads(pickle.dumps(error("row 7 of task 3 is too large")))
    assert type(made) is error and str(made) == "row 7 of task 3 is too large"
