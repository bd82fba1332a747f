"""Messages of a queue for several links of one session, written by one call of the kernel.

A link that gets one message pays as much for a call of its own as for hundreds of messages.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from hubweir.amqp.transport.sender_link import NOWHERE, SenderLink, SendProgress
from hubweir.amqp.transport.serial_number import MODULUS
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
) -> SendProgress:
    """Send unsettled the next counts[i] rows on links[i], which `takes` them, as SenderLink.send_messages does.

    All links are of one session. What is sent are the first rows, as many as the session's window and max_bytes allow;
    none while it holds frames back.
    """
    session = links[0].session
    first_id, window = session.next_delivery_id, session.window.remote_window
    if not window or not session.is_writable:
        return SendProgress(0, 0, NOWHERE, first_id)
    handles = array("q")
    for link, count in zip(links, counts, strict=True):
        handles.extend([link.handle] * count)
    out, form = session.connection.out, links[0].form(settled=False)
    start, room = len(out), SendRoom(len(handles), window, max_bytes)
    written, frames = deliver_messages(run, rows, 0, id_prefix, form, first_id, room, out, handles)
    size, left, next_id = len(out) - start, written, first_id
    for link, count in zip(links, counts, strict=True):
        its = min(count, left)
        if not its:
            break
        link.started(next_id, its, settled=False)
        left, next_id = left - its, (next_id + its) % MODULUS
    session.written(links[0], written, frames, start)
    return SendProgress(written, size, NOWHERE, first_id)
