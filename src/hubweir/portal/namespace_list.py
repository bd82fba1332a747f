"""The namespaces of the service: all of them for whoever manages the default one, for others their own alone.

They are made and deleted by `hubweir namespace` (gateway/http/namespaces.py), which shows a new one's key once.
"""

from __future__ import annotations

from hubweir.gateway.http.exchange import Response
from hubweir.gateway.http.namespaces import document_of
from hubweir.portal.visit import Visit


async def namespaces(visit: Visit) -> Response:
    process = visit.gateway.process
    seen = process.gateways if visit.gateway is process.default else [visit.gateway]
    return visit.show("namespaces.html", namespaces=[document_of(each) for each in seen])
