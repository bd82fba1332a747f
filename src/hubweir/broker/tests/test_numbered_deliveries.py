"""Deliveries of several batches from an idempotent producer."""

from hubweir.broker.capture.tests.capture_world import envelope
from hubweir.broker.commands.command import Answer
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AppendNumbered
from hubweir.broker.tests.numbered_world import LOG_ID, NumberedWorld, transfer
from hubweir.messaging_store.record import Producer
from hubweir.testing.answers import opened_log


def test_a_delivery_of_several_batches_is_taken_only_when_they_are_numbered_on() -> None:
    """One over 64 KiB has several. With a gap or an overlap its numbers would be those of other events."""
    world = NumberedWorld(1, producers=1)
    sender, answers = world.senders[0], list[Answer]()
    while not sender.accepted:  # the first step attaches
        sender.act(world.random)
        world.env.run_for(100)

    def batches(*numbered: tuple[int, int]) -> bytearray:
        """Each: the number of its first event, behind those that were accepted, and how many it has."""
        runs = [transfer(Producer(1, sender.epoch, sender.accepted + first), count) for first, count in numbered]
        return bytearray(b"".join(runs))

    def answer_to(run: bytearray) -> Answer:
        assert sender.opening is not None
        world.broker.submit(AppendNumbered(LOG_ID, sender.opening, run), answers.append)
        world.env.run_for(200)
        return answers[-1]

    before = opened_log(world.env, world.store, LOG_ID).bounds.next_index
    for wrong in (batches((1, 2), (2, 1)), batches((1, 2), (4, 1)), batches((1, 2), (1, 2)), bytearray()):
        refused = answer_to(wrong)
        assert isinstance(refused, Refusal) and refused.known and "nothing was stored" in refused.text
    refused = answer_to(batches((1, 2)) + envelope([b"by nobody"]))
    assert isinstance(refused, Refusal) and refused.known
    assert opened_log(world.env, world.store, LOG_ID).bounds.next_index == before
    assert answer_to(batches((1, 2), (3, 2), (5, 1))) == EventsAppended(before, before + 5)
