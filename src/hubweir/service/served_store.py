"""One messaging store of several in a process: opened at the start, or later when it is away; the way to its broker.

A store is *away* while its folder is missing or cannot be read, locked or understood: a disk that is not mounted, or
died. The others are served meanwhile, an alarm stands, and it is looked for again, after 1 s and then ever later, up to
every 5 s. What is asked of its broker is refused as known. When it is there again, the alarm stands until its logs are
open, too. Looks at its disk are made on threads of its own, so that a disk that hangs holds up nobody else.

After a crash: a folder that catalogs name logs in is never made anew; a store that is new is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from hubweir.alarms import STORE_AWAY, Alarms
from hubweir.broker.broker import Broker
from hubweir.broker.commands.broker_process import MarkStore
from hubweir.broker.commands.command import Answer, Command, Push
from hubweir.broker.commands.process import Done, Refusal
from hubweir.env import Env, Lane, Result, Timer, join_path
from hubweir.errors import NOT_FOUND, STORE_OFFLINE, HubweirError
from hubweir.messaging_store.disk.layout import FORMAT_NAME
from hubweir.messaging_store.log import call_all
from hubweir.service.data_folder import store_folder

logger = logging.getLogger(__name__)

FIRST_RETRY_MS, LAST_RETRY_MS = 1_000, 5_000


class StoreMissing(HubweirError):
    """A folder is not there that catalogs name logs in."""


class StoreTakenAway(HubweirError):
    """Somebody wants to see what the loss of a store does."""


class ServedStore:
    """See the module's text. Used on the loop. index: of the store, as placements name it."""

    def __init__(
        self, index: int, env: Env, alarms: Alarms, *, open_broker: Callable[[Env], Broker], has_logs: bool
    ) -> None:
        """env: with threads of the store's own. open_broker: opens the store and makes the broker on it.

        has_logs: catalogs name logs in it.
        """
        self.index = index
        self.on_push: Callable[[Push], None] | None = None
        self.broker: Broker | None = None
        self.problem: Exception | None = None
        self._env = env
        self._alarms = alarms
        self._open_broker = open_broker
        self._has_logs = has_logs
        self._on_change: list[Callable[[ServedStore], None]] = []
        self._retry: Timer | None = None
        self._retry_ms = FIRST_RETRY_MS
        self._is_stopped = self._is_kept_away = False
        self._closing = 0  # brokers that have not stopped yet; two when a disk was replaced meanwhile
        self._on_free: list[Callable[[], None]] = []

    @property
    def is_up(self) -> bool:
        """Whether its broker takes commands. `problem` says why not."""
        return self.broker is not None

    def on_change(self, listener: Callable[[ServedStore], None]) -> None:
        """Have it called whenever the store came or was taken away, and when a look at it found it away."""
        self._on_change.append(listener)

    def start(self) -> None:
        """Look at the store, and open it; again until it is open."""
        self._env.offload(Lane.MAINTENANCE, self._look, self._looked)

    def stop(self, on_done: Callable[[], None]) -> None:
        """Look no more, and stop its broker. on_done: once, when its folder is free."""
        self._is_stopped = True
        if self._retry is not None:
            self._retry.cancel()
        broker, self.broker = self.broker, None
        self._close(broker, on_done)

    def take_away(self, on_done: Callable[[], None]) -> None:
        """Stop its broker, and keep the store away until `bring_back`, so that somebody sees what its loss does.

        on_done: when its folder is free.
        """
        broker, self.broker = self.broker, None
        self._is_kept_away = True
        if self._retry is not None:
            self._retry.cancel()
        self.problem = StoreTakenAway(f"{store_folder(self.index)} was taken away, and is not brought back yet")
        self._alarms.begin(STORE_AWAY, self._about, str(self.problem))
        self._tell()
        self._close(broker, on_done)

    def bring_back(self) -> None:
        """Open a store that was taken away; nothing when it was not."""
        if self._is_kept_away:
            self._is_kept_away = False
            self.start()

    def opened(self) -> None:
        """Its logs are open, or an alarm of each says why not: all of it is served again. Nothing while it is away."""
        if self.is_up:
            self._alarms.end(STORE_AWAY, self._about)

    # As a client of its broker (gateway/brokers.py)

    def submit(self, command: Command, on_answer: Callable[[Answer], None]) -> None:
        """Run a command, or refuse it as known; on_answer is called exactly once."""
        if self.broker is None:
            on_answer(Refusal(STORE_OFFLINE, f"messaging store {store_folder(self.index)} is away; try again later"))
        else:
            self.broker.submit(command, on_answer)

    def listen(self, on_push: Callable[[Push], None]) -> None:
        """Give whatever the broker pushes to on_push from now on, when it comes later, too."""
        self.on_push = on_push

    # Steps

    def _look(self) -> None:
        """Away from the loop: whether the disk answers, and has what it must have."""
        folder, files = store_folder(self.index), self._env.files
        if files.exists(join_path(folder, FORMAT_NAME)):
            files.sync_folder(folder)
        elif self._has_logs:
            raise StoreMissing(f"the folder {folder} is not there, or empty, and catalogs name logs in it: put it back")

    def _looked(self, result: Result[None]) -> None:
        if self._is_stopped or self._is_kept_away or self.is_up:
            return
        try:
            result.value()
            broker = self._open_broker(self._env)
        except (HubweirError, OSError) as error:
            self._stay_away(error)
            return
        if self.problem is not None:
            self._alarms.begin(STORE_AWAY, self._about, "it is there again, and its logs are being opened")
        self.problem = None
        self.broker = broker
        broker.on_push = self._push
        broker.start()
        self._retry_ms = FIRST_RETRY_MS
        self._has_logs = True
        self._tell()

    def _stay_away(self, error: Exception) -> None:
        self.problem = error
        self._alarms.begin(STORE_AWAY, self._about, f"{error}; it is looked for again within {LAST_RETRY_MS // 1000} s")
        self._retry = self._env.call_later(self._retry_ms, self.start)
        self._retry_ms = min(2 * self._retry_ms, LAST_RETRY_MS)
        self._tell()

    def _close(self, broker: Broker | None, on_done: Callable[[], None]) -> None:
        """Stop a broker that is used no more; on_done once none holds the folder: at once, or when the last stopped."""
        if broker is not None:
            self._closing += 1
            broker.stop(self._closed)
        if self._closing:
            self._on_free.append(on_done)
        else:
            on_done()

    def _closed(self) -> None:
        self._closing -= 1
        if self._closing:
            return
        waits, self._on_free = self._on_free, []
        call_all(waits)

    def _tell(self) -> None:
        for listener in self._on_change:
            listener(self)

    def _push(self, push: Push) -> None:
        if self.on_push is not None:
            self.on_push(push)

    @property
    def _about(self) -> str:
        return f"store {store_folder(self.index)}"


def mark_store(stores: Mapping[int, ServedStore], command: MarkStore, on_answer: Callable[[Answer], None]) -> None:
    """Take a store of these away, or bring it back, as a command says."""
    store = stores.get(command.store)
    if store is None:
        on_answer(Refusal(NOT_FOUND, f"there is no messaging store {command.store} here"))
    elif command.is_away:
        store.take_away(lambda: on_answer(Done()))
    else:
        store.bring_back()
        on_answer(Done())
