"""`hubweir` that ends without a word (SIGKILL) when it comes to a fault point for the n-th time.

CRASH_AT names the point, CRASH_COUNT says n: python crashing_server.py serve ...
"""

import os
import signal

from hubweir.cli.main import main
from hubweir.drivers.system_env import SystemEnv

left = int(os.environ["CRASH_COUNT"])


def fault(env: SystemEnv, point: str) -> None:
    """Stand in for SystemEnv.fault; called on the loop and in worker threads."""
    global left
    if point == os.environ["CRASH_AT"]:
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


SystemEnv.fault = fault  # type: ignore[method-assign]
main()
