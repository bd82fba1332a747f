"""Messages of a queue for several links of one session, written by one call of the kernel.

A link that gets one message pays as much for a call of its own as for hundreds of messages. And so it is with what
receivers say of them: their ids follow each other, so they are unsettled as one range, whatever links they went out on.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from hubweir.amqp.transport.delivery import SentTogether
from hubweir.amqp.transport.sender_link import NOWHERE, SenderLink, SendProgress
from hubweir.kernels import deliver_messages
from hubweir.kernels.contract import SendRoom


def send_jointly(
    links: Sequence[SenderLink],
    counts: array[int],
    run: bytes | bytearray | memoryview,
    rows: array[int],
    *,
    id_prefix: bytes,
    max_bytes: int,
    context: object,
) -> SendProgress:
    """Send unsettled the next counts[i] rows on links[i], which `takes` them, as SenderLink.send_messages does.

    All links are of one session, and their host answers (SenderLink.answer_by_host). What is sent are the first rows,
    as many as the session's window and max_bytes allow; none while it holds frames back. What receivers say of them is
    reported as SettledTogether, with this context.
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
    if written:
        session.settlement.sent.add(first_id, written, SentTogether(first_id, of_each[:written], context))
    session.written(links[0], written, frames, start)
    return SendProgress(written, size, NOWHERE, first_id)
