"""The limit of a wait for a keeper, by the clock of the machine: a test that sets that of a service ends no wait."""

from __future__ import annotations

from hubweir.broker.commands.command import Answer, OnAnswer
from hubweir.broker.commands.process import Refusal
from hubweir.env import Env
from hubweir.errors import TIMED_OUT


def answered_within(limit_ms: int, env: Env, on_answer: OnAnswer) -> OnAnswer:
    """What to give the keeper in the place of on_answer, which is so called once, from now on within limit_ms.

    A keeper that said nothing by then stalls: on_answer hears a refusal that is not known, and what the keeper says
    later is for nobody.
    """
    waits = [on_answer]

    def answered(answer: Answer) -> None:
        timer.cancel()
        if waits:
            waits.pop()(answer)

    silent = Refusal(TIMED_OUT, f"the keeper said nothing for {limit_ms / 1_000:g} s", known=False)
    timer = env.machine.call_later(limit_ms, lambda: answered(silent))
    return answered
