"""A key does not leak by accident."""

import copy
import pickle
from collections.abc import Callable

import pytest

from hubweir.namespace.secret import Secret


@pytest.mark.parametrize(
    "leak",
    [
        repr,
        str,
        lambda secret: f"{secret}",
        lambda secret: secret == Secret("k"),
        lambda secret: secret != "k",
        lambda secret: {secret},
        pickle.dumps,
        copy.deepcopy,
    ],
)
def test_printing_comparing_and_copying_a_secret_raise(leak: Callable[[Secret], object]) -> None:
    with pytest.raises(TypeError) as refused:
        leak(Secret("k3y"))
    assert "k3y" not in str(refused.value)


def test_only_reveal_gives_the_key() -> None:
    assert Secret("k3y").reveal() == "k3y"
    assert Secret("k3y")
    assert not Secret("")
