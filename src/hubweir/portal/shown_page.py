"""Events or messages of one page, each as it is shown: what is slow about that goes on beside the loop, or in steps.

To indent JSON takes milliseconds a message, so the loop has its turns in between. Avro files are read together by a
process of their own, and only when somebody asks for that view.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hubweir.portal.avro_body import AvroText, is_avro_file
from hubweir.portal.avro_reading import read_avro
from hubweir.portal.shown_message import AVRO, ShownMessage, body_limit, encoded_body, shown_message
from hubweir.portal.visit import Visit


async def shown_messages(visit: Visit, messages: Sequence[bytes], view: str) -> list[ShownMessage]:
    """Encoded messages, as a page that has room for all of them shows each. Raises ServiceError TIMED_OUT."""
    shown, limit = [], body_limit(len(messages))
    files = await _avro_files(visit, messages, limit) if view == AVRO else {}
    for number, data in enumerate(messages):
        shown.append(shown_message(data, view, limit, files.get(number)))
        await asyncio.sleep(0)
    return shown


async def _avro_files(visit: Visit, messages: Sequence[bytes], limit: int) -> dict[int, AvroText]:
    """What is in those that are Avro files, by their place among the messages."""
    bodies = [encoded_body(data) for data in messages]
    places = [place for place, body in enumerate(bodies) if is_avro_file(body)]
    if not places:
        return {}
    return dict(zip(places, await read_avro(visit, [bodies[place] for place in places], 2 * limit), strict=True))
