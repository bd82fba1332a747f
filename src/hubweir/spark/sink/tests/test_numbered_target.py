from array import array
from collections.abc import Callable
from contextlib import closing

import pytest

from hubweir.client.blocking import BlockingEventHubClient, BlockingNumberedSender
from hubweir.errors import NOT_IMPLEMENTED, PRODUCER_EPOCH_STOLEN, ServiceError
from hubweir.spark.errors import ChangedRepeat
from hubweir.spark.sink.numbered_target import NoNumbers, NumberedTarget
from hubweir.spark.sink.producer_ids import Work
from hubweir.spark.sink.row_targets import EventRows
from hubweir.spark.sink.sink_columns import variable
from hubweir.spark.sink.tests.sink_rows import rows, stored
from hubweir.spark.sink.unsettled import Unsettled
from hubweir.spark.sink.write_options import WriteOptions, parse_write_options

ClientOf = Callable[[str], BlockingEventHubClient]
OptionsOf = Callable[..., dict[str, str]]
WORK = Work("query", 0, 0)


@pytest.fixture
def hub(new_hub: Callable[..., str]) -> str:
    return new_hub(partition_count=1)


@pytest.fixture
def client(client_of: ClientOf, hub: str) -> BlockingEventHubClient:
    return client_of(hub)


@pytest.fixture
def options(options_of: OptionsOf, hub: str) -> WriteOptions:
    return parse_write_options(options_of(hub))


def put(target: NumberedTarget, numbers: range) -> None:
    """The numbers as rows of one record batch."""
    found = EventRows(len(numbers), variable(rows(numbers).column(0)), None, None, 1)
    target.put(found, array("q", range(len(numbers))), 0, len(numbers))


def test_a_repeat_goes_on_behind_what_is_stored(client: BlockingEventHubClient, options: WriteOptions) -> None:
    for upto in (50, 80, 80):
        unsettled = Unsettled()
        with closing(NumberedTarget(client, options, WORK, "0", unsettled)) as target:
            put(target, range(30))
            put(target, range(30, upto))
            target.check_all_came()
            unsettled.settle()
            assert target.skipped == target.stored
    assert stored(client) == [list(range(80))]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [(range(49), "made 49 rows, and 50 were stored"), (range(1, 51), "made other rows: the first 50 differ")],
)
def test_a_repeat_with_other_rows_is_refused(
    client: BlockingEventHubClient, options: WriteOptions, numbers: range, text: str
) -> None:
    for made in (range(50), numbers):
        unsettled = Unsettled()
        with closing(NumberedTarget(client, options, WORK, "0", unsettled)) as target:
            if made == numbers:
                with pytest.raises(ChangedRepeat, match=text):
                    put(target, made)
                    target.check_all_came()
            else:
                put(target, made)
                unsettled.settle()
    assert stored(client) == [list(range(50))]


def test_a_link_that_ends_in_the_middle_is_opened_again(client: BlockingEventHubClient, options: WriteOptions) -> None:
    unsettled = Unsettled()
    with closing(NumberedTarget(client, options, WORK, "0", unsettled)) as target:
        for start in range(0, 300, 10):
            put(target, range(start, start + 10))
            if start % 70 == 0:
                target._sender.close()  # what is in flight ends unknown
        unsettled.settle()
    assert stored(client) == [list(range(300))]


def test_a_checkpoint_that_was_set_back_is_refused(client: BlockingEventHubClient, options: WriteOptions) -> None:
    NumberedTarget(client, options, Work("query", 5, 0), "0", Unsettled()).close()
    with pytest.raises(
        ChangedRepeat, match="has rows of a later batch than 4 of this query: its checkpoint was set back"
    ):
        NumberedTarget(client, options, Work("query", 4, 0), "0", Unsettled())


def test_another_attempt_ends_this_one(client: BlockingEventHubClient, options: WriteOptions) -> None:
    unsettled = Unsettled()
    with closing(NumberedTarget(client, options, WORK, "0", unsettled)) as target:
        put(target, range(10))
        unsettled.settle()
        with closing(NumberedTarget(client, options, WORK, "0", Unsettled())) as other:
            assert other.stored == 10
            put(target, range(10, 20))
            with pytest.raises(
                ServiceError,
                match="another attempt at task 0 took over, or another run of the query on this checkpoint",
            ) as refused:
                unsettled.settle()
    assert refused.value.condition.symbol == PRODUCER_EPOCH_STOLEN.symbol
    assert stored(client) == [list(range(10))]


def test_a_service_without_numbers_is_told_apart(
    client: BlockingEventHubClient, options: WriteOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> BlockingNumberedSender:
        raise ServiceError(NOT_IMPLEMENTED, "this service takes no rounds")

    monkeypatch.setattr(client, "numbered_sender", refused)
    with pytest.raises(NoNumbers, match="takes no rounds"):
        NumberedTarget(client, options, WORK, "0", Unsettled())
