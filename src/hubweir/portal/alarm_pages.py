"""The alarms that stand in this process, the oldest first.

They are the whole service's, and may name entities of any namespace: of several, the default one's managers see them.
"""

from __future__ import annotations

from hubweir.gateway.http.exchange import Response
from hubweir.portal.visit import Visit


async def alarms(visit: Visit) -> Response:
    return visit.show("_alarms.html" if visit.is_fragment else "alarms.html")
