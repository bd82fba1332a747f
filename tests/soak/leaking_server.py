"""`hubweir` that keeps memory and a file descriptor at every scrape, and says so as an error and an alarm: the control
arm of test_long_life.py.
"""

import os
import sys

from hubweir.alarms import READ_FAULT
from hubweir.cli.main import main
from hubweir.service.scrape import Scrape

kept: list[object] = []
own = Scrape.own


async def leaking(self):  # type: ignore[no-untyped-def]
    kept.extend((os.urandom(2**20), os.open(sys.executable, os.O_RDONLY)) for _ in range(4))
    self._alarms.begin(READ_FAULT, "the planted leak", "a planted alarm")
    return await own(self)


Scrape.own = leaking  # type: ignore[method-assign]
main()
