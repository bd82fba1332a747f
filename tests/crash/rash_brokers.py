"""`hubweir serve --brokers` whose processes have one planted defect, named by PLANTED: the control arm of
test_broker_faults.py. The supervisor runs this file, and starts it again, with a number, for each broker process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.fragment import EnqueueMessages, MessagesEnqueued
from hubweir.broker.commands.partition import AppendEvents, EventsAppended
from hubweir.broker.commands.process import Refusal
from hubweir.broker.remote_broker import RemoteBroker
from hubweir.cli.main import main
from hubweir.service import broker_process, supervisor

BACK_MS = 2_500  # a broker that was killed is there again by then
OnAnswer = Callable[[Answer], None]
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
                self._env.call_later(BACK_MS, lambda: submit(self, again, on_answer))
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


{"again": sends_again, "stored": takes_for_stored}[os.environ["PLANTED"]]()
if sys.argv[1].isdecimal():
    broker_process.main()
else:
    supervisor.PROGRAM = (sys.executable, __file__)
    main()
