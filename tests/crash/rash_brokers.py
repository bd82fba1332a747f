"""`hubweir serve --brokers` whose processes have one planted defect, named by PLANTED: the control arms of
test_broker_faults.py and test_network_faults.py. The supervisor runs this file, and starts it again, with a number, for
each broker process.
"""

from __future__ import annotations

import os
import sys

from hubweir.amqp.transport.serial_number import add_serial
from hubweir.broker.commands.command import Answer, Command, OnAnswer
from hubweir.broker.commands.fragment import EnqueueMessages, MessagesEnqueued, SettleMessages
from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.cli.main import main
from hubweir.errors import SERVER_BUSY, STORE_OFFLINE
from hubweir.gateway.amqp.queue_receiver_node import QueueReceiverNode
from hubweir.queue.settle_outcome import SettleOutcome
from hubweir.service import broker_process, supervisor

AGAIN_MS = 200  # a broker that was killed is asked again and again until it is there
AWAY = (STORE_OFFLINE, SERVER_BUSY)
submit = RemoteBroker.submit


def sends_again() -> None:
    """A gateway sends again what the broker went away with, when the broker is back."""

    def rash(self: RemoteBroker, command: Command, on_answer: OnAnswer) -> None:
        again = command
        if isinstance(command, AppendEvents | EnqueueMessages):
            named = {name: getattr(command, name) for name in command.__struct_fields__}
            again = type(command)(**(named | {"run": bytearray(command.run)}))

        def answered(answer: Answer) -> None:
            if again is not command and isinstance(answer, Refusal) and not answer.known:
                self._env.call_later(AGAIN_MS, lambda: submit(self, again, repeated))
            else:
                on_answer(answer)

        def repeated(answer: Answer) -> None:
            if isinstance(answer, Refusal) and answer.known and answer.condition in AWAY:
                self._env.call_later(AGAIN_MS, lambda: submit(self, again, repeated))
            else:
                on_answer(answer)

        submit(self, command, answered)

    RemoteBroker.submit = rash  # type: ignore[method-assign]


def takes_for_stored() -> None:
    """A gateway takes for stored what the broker went away with."""

    def rash(self: RemoteBroker, command: Command, on_answer: OnAnswer) -> None:
        def answered(answer: Answer) -> None:
            if isinstance(answer, Refusal) and not answer.known and isinstance(command, AppendEvents):
                answer = EventsAppended(0, command.events)
            elif isinstance(answer, Refusal) and not answer.known and isinstance(command, EnqueueMessages):
                answer = MessagesEnqueued(0, command.messages)
            on_answer(answer)

        submit(self, command, answered)

    RemoteBroker.submit = rash  # type: ignore[method-assign]


def takes_for_settled() -> None:
    """A gateway takes for completed what it sent to a receiver whose connection is lost."""
    closed = QueueReceiverNode.closed

    def rash(self: QueueReceiverNode) -> None:
        if self.host.is_over:  # type: ignore[attr-defined]  # its connection is
            for stretch in tuple(self.sent._stretches):
                for sent in self.sent.take_ranges(stretch.first_id, add_serial(stretch.first_id, stretch.count - 1)):
                    place = self._place_of(sent)
                    command = SettleMessages(place.log_id, sent.tokens, SettleOutcome.COMPLETE)
                    place.broker.submit(command, lambda answer: None)
        closed(self)

    QueueReceiverNode.closed = rash  # type: ignore[method-assign]


{"again": sends_again, "stored": takes_for_stored, "settled": takes_for_settled}[os.environ["PLANTED"]]()
if sys.argv[1].isdecimal():
    broker_process.main()
else:
    supervisor.PROGRAM = (sys.executable, __file__)
    main()
