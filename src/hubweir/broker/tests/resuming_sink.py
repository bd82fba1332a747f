"""A sink that resumes, as a client of the model in numbered_world.py: rounds of rows, each to be stored once.

It attaches with its round and a null number, learns the last number and the digest of its rows so far, and sends what
follows; after any refusal, unknown outcome or crash it attaches again. What it learns must be durable and right: at
least what was accepted, with the digest of just those rows. A link or a round from before must never store anything.
"""

from __future__ import annotations

import zlib
from random import Random
from typing import TYPE_CHECKING

from hubweir.broker.commands.command import Answer, Owner
from hubweir.broker.commands.partition import EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.producer import AlreadyAppended, AppendNumbered, OpenProducer, ProducerOpened
from hubweir.messaging_store.record import Producer

if TYPE_CHECKING:
    from hubweir.broker.tests.numbered_world import NumberedWorld

ROWS_MAX = 12


def digest_of(producer_id: int, round_number: int, rows: int) -> int:
    """A digest of rows 1 .. rows of a round; 0 for none."""
    text = b"".join(b"<%d:%d:%d>" % (producer_id, round_number, row) for row in range(1, rows + 1))
    return zlib.crc32(text)


class ResumingSink:
    """One task of a pipeline that writes to one partition."""

    def __init__(self, world: NumberedWorld, producer_id: int) -> None:
        self.world = world
        self.producer_id = producer_id
        self.round = 0
        self.rows = ROWS_MAX
        self.accepted: dict[int, int] = {0: 0}  # by round: every row up to here was accepted
        self.link: tuple[int, int, int, int] | None = None  # opening, epoch, the life it was made in, round
        self.zombie: tuple[int, int, int, int] | None = None  # an older link
        self.next = 1
        self.is_opening = -1
        self.resumed = 0

    def act(self, random: Random) -> None:
        world = self.world
        if self.is_opening == world.life:
            return
        if random.random() < 0.1:
            self.haunt()
        elif self.link is None or self.link[2] != world.life:
            self.attach(self.round)
        elif self.accepted[self.round] >= self.rows:
            self.round += 1
            self.rows = random.randrange(1, ROWS_MAX)
            self.accepted[self.round] = 0
            self.attach(self.round)
        elif self.next <= self.rows:
            self.send(min(random.choice([1, 1, 2, 4]), self.rows - self.next + 1))

    def attach(self, round_number: int) -> None:
        world, life = self.world, self.world.life
        self.is_opening = life
        if self.link is not None:
            self.zombie, self.link = self.link, None

        def answered(answer: Answer) -> None:
            if life != world.life:
                return
            self.is_opening = -1
            if isinstance(answer, ProducerOpened):
                self.learn(answer)

        command = OpenProducer(world.log_id, Owner(1, self.producer_id), self.producer_id, None, None, round_number)
        world.broker.submit(command, answered)

    def learn(self, answer: ProducerOpened) -> None:
        number = answer.sequence_number
        if number < self.accepted[self.round]:
            self.world.violate(f"{self.accepted[self.round]} rows were accepted, and the attach says {number}")
        if answer.digest != digest_of(self.producer_id, self.round, number):
            self.world.violate(f"round {self.round}: the digest is not that of {number} rows")
        self.resumed += number > 0
        self.accepted[self.round] = number  # told, so as good as accepted: the sink will not send it again
        self.next = number + 1
        self.link = (answer.opening_id, answer.epoch, self.world.life, self.round)

    def send(self, count: int) -> None:
        assert self.link is not None
        world, link, life, first, round_number = self.world, self.link, self.world.life, self.next, self.round
        self.next += count
        last = first + count - 1
        digest = digest_of(self.producer_id, round_number, last)
        run = world.transfer(Producer(self.producer_id, link[1], first, round_number + 1, digest), count)

        def answered(answer: Answer) -> None:
            if isinstance(answer, EventsAppended | AlreadyAppended):
                self.accepted[round_number] = max(self.accepted[round_number], last)
            elif life == world.life and self.link == link:
                self.link = None  # attach again

        world.broker.submit(AppendNumbered(world.log_id, link[0], run), answered)

    def haunt(self) -> None:
        """What an older attempt of the same task may still do: attach with its round, or send on its link."""
        world = self.world

        def opened(answer: Answer) -> None:
            if isinstance(answer, ProducerOpened):
                world.violate(f"round {self.round - 1} was let in though {self.round} was attached")

        if self.round and self.accepted[self.round]:
            other, round_number = Owner(9, self.producer_id), self.round - 1
            old = OpenProducer(world.log_id, other, self.producer_id, None, None, round_number)
            world.broker.submit(old, opened)
        if self.zombie is not None and self.zombie[2] == world.life and self.link is not None:
            opening, epoch, _, round_number = self.zombie
            row = self.next
            producer = Producer(self.producer_id, epoch, row, round_number + 1, 0)

            def sent(answer: Answer) -> None:
                if not isinstance(answer, Refusal):
                    world.violate(f"a link of before, with epoch {epoch}, stored row {row}")

            world.broker.submit(AppendNumbered(world.log_id, opening, world.transfer(producer, 1)), sent)
