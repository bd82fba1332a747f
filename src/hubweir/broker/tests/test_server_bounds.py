"""When a server stops reading its peer, and goes on: told to a spy in the place of its driver."""

from typing import Any

from hubweir.broker.commands.command import Owner
from hubweir.broker.commands.partition import AppendEvents, CreatePartition
from hubweir.broker.commands.reader import OpenReader, ReaderClosed
from hubweir.broker.server import BrokerServer
from hubweir.broker.tests.test_server import sealed
from hubweir.errors import NOT_FOUND
from hubweir.event_hub.event_position import EARLIEST
from hubweir.messaging_store.log import Durability
from hubweir.testing.broker_frames import sent


class Spy:
    """The driver of a server's stream: what it was told."""

    def __init__(self, server: BrokerServer) -> None:
        self.calls: list[str] = []
        server._driver = self  # type: ignore[assignment]

    def pause_reading(self) -> None:
        self.calls.append("pause")

    def resume_reading(self) -> None:
        self.calls.append("resume")

    def send(self, buffers: object) -> None:
        pass


def test_runs_under_way_are_bounded_by_their_bytes_too(bench: Any) -> None:
    """A few commands of 16 MiB each would else fill the memory. (Rule R17)"""
    events = sealed(1_000)
    server = BrokerServer(bench.broker, inbox_bytes=3 * len(events))
    spy = Spy(server)
    assert server.commands_under_way == 0
    for request_id in (1, 2, 3):
        assert spy.calls == []
        server.on_frame(*sent(request_id, AppendEvents("a", events)))
    assert spy.calls == ["pause"] and server.commands_under_way == 3
    bench.log.complete()
    assert spy.calls == ["pause", "resume"] and server.commands_under_way == 0


def test_what_a_command_has_in_its_head_counts_too(bench: Any) -> None:
    """Tokens of locks and states of sessions are no part of a run."""
    named = sent(1, CreatePartition("b", "hub", "0", Durability.DURABLE, 1, "n" * 1_000))
    server = BrokerServer(bench.broker, inbox_bytes=1_000)
    spy = Spy(server)
    server.on_frame(*named)
    assert spy.calls[:1] == ["pause"]


def test_a_push_behind_the_end_of_the_stream_goes_nowhere(bench: Any) -> None:
    server = BrokerServer(bench.broker)
    Spy(server)
    owner = Owner(5, 1)
    server.on_frame(*sent(1, OpenReader("a", owner, "g", EARLIEST, None, None)))
    server.on_closed()
    server.push(ReaderClosed(owner, "a", 1, NOT_FOUND, "gone"))


def test_a_peer_that_takes_no_answers_is_asked_for_no_more_until_it_does(bench: Any) -> None:
    """Else what it asks for would pile up here, without a bound. (Rule R17)"""
    server = BrokerServer(bench.broker, inbox_commands=2)
    spy = Spy(server)
    server.on_writing_paused()
    server.on_writing_paused()
    assert spy.calls == ["pause"]
    events = sealed(10)
    server.on_frame(*sent(1, AppendEvents("a", events)))
    server.on_frame(*sent(2, AppendEvents("a", events)))
    bench.log.complete()  # room among the commands alone is not enough
    assert spy.calls == ["pause"]
    server.on_frame(*sent(3, AppendEvents("a", events)))
    server.on_frame(*sent(4, AppendEvents("a", events)))
    server.on_writable()  # nor is a peer that listens while too many commands are under way
    assert spy.calls == ["pause"]
    bench.log.complete()
    assert spy.calls == ["pause", "resume"]
