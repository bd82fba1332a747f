"""The table of who may read, row by row, with the texts that clients and people look for."""

import pytest

from hubweir.errors import LINK_STOLEN, RESOURCE_LIMIT, ServiceError
from hubweir.event_hub.consumer_group import Reader
from hubweir.event_hub.epoch import READERS_PER_GROUP_LIMIT, displaced_by, displacement


def readers(*epochs: int | None, names: tuple[str | None, ...] = ()) -> list[Reader]:
    given = [*names, *[None] * len(epochs)]
    return [Reader(number, "g", given[number], epoch, "owner") for number, epoch in enumerate(epochs)]


def refusal(existing: list[Reader], name: str | None, epoch: int | None) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        displaced_by(existing, name=name, epoch=epoch)
    return caught.value


@pytest.mark.parametrize("epoch", [None, 0, 7])
def test_the_first_reader_displaces_nobody(epoch: int | None) -> None:
    assert displaced_by([], name=None, epoch=epoch) == []


@pytest.mark.parametrize("count", range(1, READERS_PER_GROUP_LIMIT))
def test_readers_without_an_epoch_read_beside_one_another_up_to_the_limit(count: int) -> None:
    assert displaced_by(readers(*[None] * count), name=None, epoch=None) == []


def test_the_sixth_reader_is_told_who_is_there() -> None:
    refused = refusal(readers(*[None] * 5, names=("a", None, "c", "d", "")), "f", None)
    assert refused.condition is RESOURCE_LIMIT
    assert "They are: a, nil, c, d, nil." in refused.text


@pytest.mark.parametrize("count", [1, 5])
@pytest.mark.parametrize("epoch", [0, 3])
def test_an_epoch_displaces_all_readers_without_one(count: int, epoch: int) -> None:
    existing = readers(*[None] * count)
    assert displaced_by(existing, name=None, epoch=epoch) == existing


@pytest.mark.parametrize("epoch", [5, 6, 2**62])
def test_an_equal_or_higher_epoch_displaces_the_holder(epoch: int) -> None:
    existing = readers(5)
    assert displaced_by(existing, name=None, epoch=epoch) == existing


@pytest.mark.parametrize(
    ("holder", "own", "shown"),
    [("first", "second", ("first", "second")), (None, None, ("nil", "nil")), ("", "x\n", ("nil", "x?"))],
)
def test_a_lower_epoch_is_refused_letter_for_letter(
    holder: str | None, own: str | None, shown: tuple[str, str]
) -> None:
    refused = refusal(readers(1, names=(holder,)), own, 0)
    assert refused.condition is LINK_STOLEN
    assert refused.text == (
        f"Receiver '{shown[0]}' with a higher epoch '1' already exists. Receiver '{shown[1]}' with epoch 0 cannot be "
        "created. Make sure you are creating receiver with increasing epoch value to ensure connectivity, or ensure "
        "all old epoch receivers are closed or disconnected"
    )


def test_no_epoch_beside_one_is_refused_as_stolen() -> None:
    refused = refusal(readers(0, names=("holder",)), None, None)
    assert refused.condition is LINK_STOLEN
    assert "'holder' with epoch '0'" in refused.text and "Receiver 'nil' without an epoch" in refused.text


def test_a_displaced_reader_is_told_both_names_and_both_epochs() -> None:
    (first, second) = readers(None, 4, names=("old", None))
    told = displacement(first, name="new", epoch=4)
    assert told.condition is LINK_STOLEN
    assert "Receiver 'new' with epoch '4'" in told.text and "'old' without an epoch" in told.text
    assert "'nil' with epoch '4'" in displacement(second, name=None, epoch=9).text
