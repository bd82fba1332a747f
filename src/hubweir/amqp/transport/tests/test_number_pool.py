from __future__ import annotations

import random

from hubweir.amqp.transport.number_pool import NumberPool


def test_the_lowest_free_number_comes_first_and_none_beyond_the_highest() -> None:
    pool = NumberPool()
    assert [pool.take(2) for _ in range(4)] == [0, 1, 2, None]
    pool.give_back(1)
    assert pool.take(2) == 1


def test_a_wanted_number_is_given_when_it_is_free() -> None:
    pool = NumberPool()
    assert pool.take(9, wanted=4) == 4
    assert pool.take(9, wanted=4) == 0
    assert pool.take(3, wanted=7) == 1
    pool.give_back(4)
    assert pool.take(9, wanted=4) == 4


def test_no_number_names_two_things_at_once() -> None:
    choice = random.Random(5)
    pool, taken = NumberPool(), set[int]()
    for _ in range(2_000):
        if taken and choice.random() < 0.5:
            number = choice.choice(sorted(taken))
            taken.remove(number)
            pool.give_back(number)
        else:
            wanted = choice.choice([None, choice.randrange(25)])
            got = pool.take(19, wanted=wanted)
            if got is None:
                assert len(taken) == 20
                continue
            assert got not in taken and got <= 19
            taken.add(got)
