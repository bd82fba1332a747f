from random import Random

import pytest

from hubweir.client.retry import RetryPolicy
from hubweir.errors import CONNECTION_FORCED, UNAUTHORIZED, ServiceError


def test_waits_grow_up_to_the_longest_and_are_cut_by_chance() -> None:
    policy = RetryPolicy(first_s=1, factor=2, longest_s=10)
    for tried, whole in ((1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (10_000, 10)):
        waits = [policy.wait_s(tried, Random(seed)) for seed in range(200)]
        assert whole / 2 <= min(waits) < whole * 0.55
        assert whole * 0.95 < max(waits) <= whole


def test_only_what_a_retry_can_cure_is_tried_again_and_not_for_ever() -> None:
    policy = RetryPolicy(attempts=3)
    gone, refused = ServiceError(CONNECTION_FORCED, ""), ServiceError(UNAUTHORIZED, "")
    assert [policy.again(gone, tried) for tried in (1, 2, 3)] == [True, True, False]
    assert not policy.again(refused, 1)


@pytest.mark.parametrize("wrong", [{"attempts": 0}, {"first_s": -1}, {"factor": 0.5}, {"longest_s": 0.1}])
def test_policy_that_cannot_work_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="never tries, or its waits shrink"):
        RetryPolicy(**wrong)
