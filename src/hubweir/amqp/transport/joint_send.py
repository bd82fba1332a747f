"""Messages of a queue for several links of one session, written by one call of the kernel.

A link that gets one message pays as much for a call of its own as for hundreds of messages. The ids of what one call
sends follow each other, so it is unsettled in few ranges, whatever links it went out on, and what receivers say of a
range is reported once.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from hubweir.amqp.transport.delivery import SentTogether
from hubweir.amqp.transport.sender_link import NOWHERE, SenderLink, SendProgress
from hubweir.kernels import deliver_messages
from hubweir.kernels.contract import SendRoom

# Deliveries of one range. A range is cut when a part of it is settled, and each cut copies what is left.
RANGE_DELIVERIES = 256


def send_jointly(
    links: Sequence[SenderLink],
    counts: array[int],
    run: bytes | bytearray | memoryview,
    rows: array[int],
    *,
    id_prefix: bytes,
    tags: bytes,
    max_bytes: int,
    context: object,
) -> SendProgress:
    """Send unsettled the next counts[i] rows on links[i], which `takes` them, as SenderLink.send_messages does.

    All links are of one session, and their host answers (SenderLink.answer_by_host). What is sent are the first rows,
    as many as the session's window and max_bytes allow; none while it holds frames back. tags: of all rows, as the
    kernel writes them. What receivers say is reported as SettledTogether, with tags and context.
    """
    session = links[0].session
    first_id, window = session.next_delivery_id, session.window.remote_window
    if not window or not session.is_writable:
        return SendProgress(0, 0, NOWHERE, first_id)
    of_each = [link for link, count in zip(links, counts, strict=True) for _ in range(count)]
    handles = array("q", [link.handle for link in of_each])
    out, form = session.connection.out, links[0].form(settled=False)
    start, room = len(out), SendRoom(len(handles), window, max_bytes)
    written, frames = deliver_messages(run, rows, 0, id_prefix, form, first_id, room, out, handles)
    size, left = len(out) - start, written
    for link, count in zip(links, counts, strict=True):
        its = min(count, left)
        if not its:
            break
        link.started(its, settled=False)
        left -= its
    whole = SentTogether(first_id, of_each, tags, context)
    for place in range(0, written, RANGE_DELIVERIES):
        end = min(written, place + RANGE_DELIVERIES)
        part = whole.part(place, end)
        session.settlement.sent.add(part.first_id, end - place, part)
    session.written(links[0], written, frames, start)
    return SendProgress(written, size, NOWHERE, first_id)
