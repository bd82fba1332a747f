"""What a broker answers, and when, on a log whose completions the test holds in its hand."""

from typing import Any

import pytest

from hubweir.alarms import PARTITION_NOT_OPEN
from hubweir.broker.broker import Broker
from hubweir.broker.commands.broker_process import ProcessCommand
from hubweir.broker.commands.command import DECLARED, Answer, Command, KeeperCommand, LogCommand, Owner
from hubweir.broker.commands.partition import (
    AppendEvents,
    AskPartitionInfo,
    ChangePartition,
    CreatePartition,
    DeletePartition,
    EventsAppended,
    OpenPartition,
    PartitionInfo,
)
from hubweir.broker.commands.process import AskCounters, CloseOwner, CountersTaken, Done, RaiseEpoch, Refusal
from hubweir.broker.commands.reader import (
    CancelRead,
    CloseReader,
    EventsRead,
    OpenReader,
    ReaderOpened,
    ReadEvents,
)
from hubweir.broker.hosted_fragment import HostedFragment
from hubweir.broker.hosted_partition import HostedPartition
from hubweir.broker.hosted_topic import HostedTopic
from hubweir.broker.tests.numbered_world import body_of, transfer
from hubweir.counters import Counters
from hubweir.errors import (
    CONDITION_OF_SYMBOL,
    INTERNAL_ERROR,
    SERVER_BUSY,
    CorruptStore,
    DiskFull,
    LogFenced,
    LogOffline,
)
from hubweir.event_hub.event_position import EARLIEST, LATEST, EventPosition, PositionKind
from hubweir.messaging_store.log import Durability, Refused
from hubweir.messaging_store.record import Producer
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.testing.answers import opened_log, runs_of
from hubweir.testing.simulated_env import SimulatedEnv

ME = Owner(1, 7)


def append(run: bytes, log_id: str = "a") -> AppendEvents:
    return AppendEvents(log_id, bytearray(run))


def reader(position: EventPosition = EARLIEST, owner: Owner = ME) -> OpenReader:
    return OpenReader("a", owner, "$Default", position, None, None)


def test_an_append_is_answered_when_its_log_says_durable_and_not_before(bench: Any) -> None:
    answers = bench.ask(append(b"abc"))
    assert answers == []
    bench.log.complete()
    assert answers == [EventsAppended(0, 3)]


@pytest.mark.parametrize(
    ("error", "symbol"),
    [
        (DiskFull("no space"), "com.microsoft:server-busy"),
        (LogOffline("a sync failed"), "com.microsoft:server-busy"),
        (LogFenced("a newer writer"), "com.microsoft:entity-moved"),
    ],
)
def test_a_refused_append_names_its_condition(bench: Any, error: Exception, symbol: str) -> None:
    bench.log.fail_with = error
    assert bench.ask(append(b"x")) == [Refusal(CONDITION_OF_SYMBOL[symbol], str(error), True)]


def test_an_append_whose_end_is_unknown_is_not_known(bench: Any) -> None:
    answers = bench.ask(append(b"x"))
    bench.log.complete(Refused(LogOffline("a sync failed"), known=False))
    assert answers == [Refusal(SERVER_BUSY, "a sync failed", False)]
    values = bench.ask(AskCounters())[0].values
    assert values["broker.appends_refused"] == 1 and "broker.events_appended" not in values


@pytest.mark.parametrize(
    "command",
    [
        append(b"x", "other"),
        AskPartitionInfo("other"),
        ChangePartition("other", Durability.DURABLE, 1),
        OpenReader("other", ME, "g", EARLIEST, None, None),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_partition_that_is_not_hosted_has_moved(bench: Any, command: Any) -> None:
    (answer,) = bench.ask(command)
    assert answer.condition.symbol == "com.microsoft:entity-moved"


@pytest.mark.parametrize(
    "command", [ReadEvents("a", 99, 1, 0), CancelRead("a", 99)], ids=lambda command: type(command).__name__
)
def test_a_reader_that_is_not_open_is_not_found(bench: Any, command: Any) -> None:
    (answer,) = bench.ask(command)
    assert answer.condition.symbol == "amqp:not-found"


def test_a_partition_that_cannot_be_opened_is_refused_and_the_next_one_is_not(bench: Any) -> None:
    plain = bench.store.create_log

    def fails_once(log_id: str, **named: Any) -> Any:
        bench.store.create_log = plain
        raise OSError(28, "No space left on device")

    bench.store.create_log = fails_once
    (refused,) = bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, 1))
    assert refused.condition.symbol == "com.microsoft:store-offline" and "No space" in refused.text
    [alarm] = bench.broker.alarms.current()
    assert alarm.kind is PARTITION_NOT_OPEN and alarm.about == "partition 1 of orders (log b)"
    assert "No space" in alarm.text and bench.broker.alarms.blocks
    assert bench.ask(OpenPartition("b", "orders", "1", Durability.DURABLE, 1)) == [Done()]
    assert bench.broker.alarms.current() == ()


def test_a_fault_while_a_partition_is_opened_is_answered_and_the_next_one_is_opened(
    bench: Any, caplog: pytest.LogCaptureFixture
) -> None:
    plain = bench.store.create_log

    def fails_once(log_id: str, **named: Any) -> Any:
        bench.store.create_log = plain
        raise ValueError("planted")

    bench.store.create_log = fails_once
    answers: list[Any] = []
    for name in ("b", "c"):
        bench.broker.submit(CreatePartition(name, "orders", "1", Durability.DURABLE, 1), answers.append)
    for _ in range(3):
        bench.env.turn()
    assert [type(answer) for answer in answers] == [Refusal, Done]
    assert answers[0].condition.symbol == "amqp:internal-error"
    assert "partition 1 of orders (log b)" in caplog.text and "planted" in caplog.text


def test_a_change_reaches_the_log_and_the_sweep(bench: Any) -> None:
    assert bench.ask(ChangePartition("a", Durability.RELAXED, 5_000)) == [Done()]
    assert bench.log.durability is Durability.RELAXED
    bench.env.pass_time(10_000)
    assert bench.log.aged == [bench.env.wall_ms - 5_000] and bench.log.trimmed == [bench.log.first]


def test_partition_info_says_what_is_visible(bench: Any) -> None:
    empty = PartitionInfo("a", -1, -1, -1, None, True, 0)
    assert bench.ask(AskPartitionInfo("a")) == [empty]
    bench.ask(append(b"abc"))
    assert bench.ask(AskPartitionInfo("a")) == [empty]
    bench.log.complete()
    assert bench.ask(AskPartitionInfo("a")) == [PartitionInfo("a", 0, 2, 2, 2, False, 3)]


def test_a_read_gets_what_is_there_and_goes_on_behind_it(bench: Any) -> None:
    bench.ask(append(b"abcd"))
    bench.log.complete()
    assert bench.ask(reader()) == [ReaderOpened(1, 0)]
    assert bench.ask(ReadEvents("a", 1, 3, 0)) == [EventsRead(1, 0, 3, b"abc")]
    assert bench.ask(ReadEvents("a", 1, 3, 0)) == [EventsRead(1, 3, 4, b"d")]
    assert bench.ask(ReadEvents("a", 1, 3, 0)) == [EventsRead(1, 4, 4, b"")]


def test_closing_an_owner_frees_its_readers_and_no_others(bench: Any) -> None:
    for owner in (Owner(1, 7), Owner(1, 8), Owner(2, 7)):
        bench.ask(reader(owner=owner))
    waiting = [bench.ask(ReadEvents("a", number, 10, 60_000)) for number in (1, 2, 3)]
    bench.ask(CloseOwner(Owner(1, 7)))
    assert [len(answers) for answers in waiting] == [1, 0, 0]
    bench.ask(CloseOwner(Owner(1, -1)))
    assert [len(answers) for answers in waiting] == [1, 1, 0]
    assert bench.ask(AskCounters())[0].values["broker.readers"] == 1
    assert bench.ask(CloseReader("a", 3)) == [Done()]
    assert bench.ask(AskCounters())[0].values["broker.readers"] == 0


def test_counters_count_events_and_bytes(bench: Any) -> None:
    bench.ask(append(b"abc"))
    bench.log.complete()
    (taken,) = bench.ask(AskCounters())
    assert isinstance(taken, CountersTaken)
    assert taken.values["broker.events_appended"] == 3
    assert taken.values["broker.bytes_appended"] == 3
    assert taken.values["broker.partitions"] == 1


@pytest.mark.parametrize("is_stored", [True, False])
def test_whoever_is_answered_is_counted_already(bench: Any, is_stored: bool) -> None:
    bench.ask(append(b"ab"))
    bench.log.complete()
    taken: list[Answer] = []
    bench.broker.submit(append(b"cde"), lambda answer: bench.broker.submit(AskCounters(), taken.append))
    bench.log.complete(None if is_stored else Refused(LogOffline("a sync failed")))
    [counted] = taken
    assert isinstance(counted, CountersTaken)
    counts = [
        counted.values.get(f"broker.{name}", 0) for name in ("events_appended", "bytes_appended", "appends_refused")
    ]
    assert counts == ([5, 5, 0] if is_stored else [2, 2, 1])


def test_the_count_of_partitions_follows_what_was_answered(bench: Any) -> None:
    taken: list[Answer] = []
    command = CreatePartition("b", "orders", "1", Durability.DURABLE, 1)
    bench.broker.submit(command, lambda answer: bench.broker.submit(AskCounters(), taken.append))
    for _ in range(3):
        bench.env.turn()
    assert isinstance(taken[0], CountersTaken) and taken[0].values["broker.partitions"] == 2
    bench.ask(DeletePartition("b"))
    bench.ask(DeletePartition("a"))
    assert bench.ask(AskCounters())[0].values["broker.partitions"] == 0


def test_stopping_answers_what_waits_closes_the_store_and_refuses_the_rest(bench: Any) -> None:
    bench.ask(reader(LATEST))
    waiting = bench.ask(ReadEvents("a", 1, 10, 60_000))
    stopped: list[bool] = []
    close, answered_before = bench.store.close, list[int]()
    bench.store.close = lambda on_done: (answered_before.append(len(waiting)), close(on_done))
    bench.broker.stop(lambda: stopped.append(True))
    bench.broker.stop(lambda: stopped.append(True))
    assert stopped == [True] and bench.store.closed and answered_before == [1]
    assert waiting == [EventsRead(1, 0, 0, b"")]
    [refused] = bench.ask(append(b"x"))  # and not run
    assert refused.condition.symbol == "com.microsoft:store-offline" and not bench.log.records
    assert bench.env.timers == 0


def test_damage_refuses_the_read_and_keeps_the_reader(bench: Any) -> None:
    bench.ask(append(b"abc"))
    bench.log.complete()
    bench.ask(reader())
    bench.log.damaged = Refused(CorruptStore("records 0 to 1 are damaged"))
    answers = bench.ask(ReadEvents("a", 1, 10, 0))
    bench.log.answer_reads()
    assert answers == [Refusal(INTERNAL_ERROR, "records 0 to 1 are damaged", True)]
    bench.log.damaged = None
    assert bench.ask(ReadEvents("a", 1, 10, 0))[0].run == b"abc"


def test_a_position_beyond_the_end_is_refused_with_the_last_one(bench: Any) -> None:
    (answer,) = bench.ask(reader(EventPosition(PositionKind.SEQUENCE_NUMBER, 10)))
    assert answer.condition.symbol == "com.microsoft:argument-error"
    assert "'10'" in answer.text


def test_a_full_disk_makes_senders_wait_stores_nothing_of_theirs_and_heals() -> None:
    env = SimulatedEnv(4)
    store = MessagingStore.open(env, "store-0")
    broker = Broker(env, store, Counters())
    log_id = "ab" * 16
    answers: list[Answer] = []

    def ask(command: Command) -> Answer:
        broker.submit(command, answers.append)
        env.run_for(100)
        return answers[-1]

    def events(number: int) -> AppendEvents:
        return AppendEvents(log_id, transfer(Producer(7, 0, number), 1), 1, 10)

    assert ask(CreatePartition(log_id, "orders", "0", Durability.DURABLE, 3_600_000)) == Done()
    env.files.capacity_bytes = 0
    for number in range(3):
        refused = ask(events(number))
        assert isinstance(refused, Refusal) and refused.known
        assert refused.condition.symbol == "com.microsoft:server-busy" and "space" in refused.text
    env.files.capacity_bytes = 1 << 30
    assert ask(events(5)) == EventsAppended(0, 1)
    stored = b"".join(bytes(run.data) for run in runs_of(env, opened_log(env, store, log_id)))
    assert body_of(7, 5) in stored and body_of(7, 1) not in stored


def test_the_store_is_raised_above_an_epoch_that_comes_and_says_when_it_cannot_be(bench: Any) -> None:
    assert bench.ask(RaiseEpoch(40)) == [Done()]
    assert bench.store.raised_above == [40]

    def no_more(newest: int, on_done: Any) -> None:
        raise CorruptStore("none comes behind it")

    bench.store.raise_epoch = no_more
    [answer] = bench.ask(RaiseEpoch(41))
    assert isinstance(answer, Refusal) and "none comes behind it" in answer.text


def test_every_command_is_handled_by_the_broker_or_by_the_resident_of_its_log_and_by_one_of_them() -> None:
    own = set(Broker._handlers)
    residents = {*HostedPartition.handlers, *HostedFragment.handlers, *HostedTopic.handlers}
    assert not set(HostedPartition.handlers) & {*HostedFragment.handlers, *HostedTopic.handlers}
    commands = {made for made in DECLARED.values() if issubclass(made, Command)}
    commands -= {made for made in commands if issubclass(made, KeeperCommand | ProcessCommand)}
    assert not own & residents
    assert own | residents == commands
    assert all(issubclass(made, LogCommand) for made in residents)
