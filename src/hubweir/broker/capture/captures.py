"""The captures of one broker: the tools that they share, and how far behind all of them are."""

from __future__ import annotations

from hubweir.alarms import Alarms
from hubweir.broker.capture.places import CapturePlaces, CaptureTools
from hubweir.broker.capture.runner import CaptureRunner
from hubweir.broker.capture.slots import CaptureSlots
from hubweir.broker.deadlines import BrokerDeadlines
from hubweir.capture.pace import CapturePace
from hubweir.counters import Counters, GaugeShare
from hubweir.env import Env
from hubweir.errors import STORE_OFFLINE, ServiceError
from hubweir.messaging_store.trusted_clock import TrustedClock


class Captures:
    """One object a broker. tools: None when it has no place for files; then it captures nothing, and refuses to.

    running: the captures that run now, which their switches enter and take out (switch.py).
    """

    def __init__(
        self,
        env: Env,
        deadlines: BrokerDeadlines,
        clock: TrustedClock,
        counters: Counters,
        alarms: Alarms,
        places: CapturePlaces | None,
    ) -> None:
        self.env = env
        self.clock = clock
        self.alarms = alarms
        pace = CapturePace()
        self.tools = (
            None
            if places is None
            else CaptureTools(env, deadlines, clock, counters, alarms, places, CaptureSlots(pace), pace)
        )
        self.running: dict[CaptureRunner, None] = {}
        names = ("partitions", "behind_events", "behind_bytes", "failing")
        self._gauges = {name: GaugeShare(counters, f"capture.{name}") for name in names}

    def need_tools(self) -> CaptureTools:
        """ServiceError STORE_OFFLINE when this broker captures nothing."""
        if self.tools is None:
            raise ServiceError(STORE_OFFLINE, "This broker has no place for captured files: it captures nothing.")
        return self.tools

    def set_gauges(self) -> None:
        """How far all of them are behind; zero when none runs any more."""
        running = self.running
        self._gauges["partitions"].set(len(running))
        self._gauges["behind_events"].set(sum(each.behind_events for each in running))
        self._gauges["behind_bytes"].set(sum(each.behind_bytes for each in running))
        self._gauges["failing"].set(sum(each.failure is not None for each in running))
