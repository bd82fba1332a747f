"""A program that prints, as JSON, whether it finds modules of hubweir as a new interpreter imports them."""

import json
import sys
import time

from hubweir.service import broker_process, scrape
from hubweir.testing import tied_server

programs = {"hubweir.service.broker_process": broker_process, "hubweir.testing.tied_server": tied_server}
print(
    json.dumps(
        {
            "programs are imported once": all(sys.modules.get(name) is each for name, each in programs.items()),
            "seconds since the process began": time.time() - scrape._BEGAN_S,
        }
    )
)
