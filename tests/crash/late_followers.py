"""`hubweir serve --brokers` whose processes follow their first keeper at once, and a later one LATE_S seconds after it
came, or "never"; the process of the index FOLLOWS_NOBODY does not even follow the first, and is lost after
UNSERVED_BEATS. The supervisor runs this file, and starts it again, with a number, for each broker process.
"""

from __future__ import annotations

import os
import sys

from hubweir.cli.main import main
from hubweir.gateway.keeper.client import KeeperClient
from hubweir.service import broker_process, heartbeat, supervisor

LATE_S = os.environ["LATE_S"]
FOLLOWS_NOBODY = os.environ.get("FOLLOWS_NOBODY", "")
came = KeeperClient.came
followed_before: list[KeeperClient] = []


def late(self: KeeperClient) -> None:
    if sys.argv[1] == FOLLOWS_NOBODY:
        return
    if self not in followed_before:
        followed_before.append(self)
        came(self)
    elif LATE_S != "never":
        self._env.machine.call_later(round(float(LATE_S) * 1_000), lambda: came(self))


heartbeat.UNSERVED_BEATS = int(os.environ.get("UNSERVED_BEATS", heartbeat.UNSERVED_BEATS))
KeeperClient.came = late  # type: ignore[method-assign]
if len(sys.argv) > 1 and sys.argv[1].isdecimal():
    broker_process.main()
else:
    supervisor.PROGRAM = (sys.executable, __file__)
    main()
