"""A read from the transport into few calls on the connection: the path every event takes.

The scan kernel cuts the buffer into a table of frames; the collect kernels take each stretch of transfers that are
whole deliveries of one link, and each of dispositions and flows, whatever their sessions and links. So Python runs once
per stretch, with a short step for each flow in it, and one step per frame only for the rest. Of a stretch what was said
of deliveries is handled before what grants credit: neither changes what the other means.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import groupby

from hubweir.amqp.messaging.outcome import DeliveryState
from hubweir.amqp.transport.connection import Connection
from hubweir.amqp.transport.faults import ConnectionFault
from hubweir.amqp.transport.flow_said import flow_said
from hubweir.amqp.transport.performatives import Disposition, decode_performative
from hubweir.amqp.transport.receiver_link import TransferPart
from hubweir.errors import FRAMING_ERROR, DecodeError
from hubweir.kernels import collect_deliveries, collect_dispositions, merge_dispositions, scan_frames
from hubweir.kernels.contract import (
    C_CHANNEL,
    C_FRAME,
    C_HANDLE,
    DELIVERY_WIDTH,
    DISPOSITION_WIDTH,
    F_ABORTED,
    F_BODY,
    F_CHANNEL,
    F_CODE,
    F_DELIVERY_ID,
    F_END,
    F_FORMAT,
    F_HANDLE,
    F_MORE,
    F_PAYLOAD,
    F_SETTLED,
    F_STATE,
    F_TAG_LENGTH,
    F_TYPE,
    FLOW_WIDTH,
    FRAME_WIDTH,
    O_CHANNEL,
    SCAN_OK,
    SCAN_TOO_LARGE,
    STATE_FRAME,
    STATE_WIDTH,
)

TRANSFER = 0x14
RECEIVERS_SAY = (0x13, 0x15)  # flow, disposition
# Rows of a table, at least and at most. The last frames that came, if they were many or so many bytes, say how many it
# may need: few large frames do not pay for a large table, and a read of small ones is cut in few calls.
LEAST_ROWS, ROWS_LIMIT, SAMPLE_BYTES = 32, 1_024, 16 * 1024
SMALLEST_FRAME = 8

_FRAME_ROW = array("q", bytes(8 * FRAME_WIDTH))
_DELIVERY_ROW = array("q", bytes(8 * DELIVERY_WIDTH))
_DISPOSITION_ROW = array("q", bytes(8 * DISPOSITION_WIDTH))
_STATE_ROW = array("q", bytes(8 * STATE_WIDTH))
_FLOW_ROW = array("q", bytes(8 * FLOW_WIDTH))
# States of one stretch that differ. Each is compared with those before: few, since mostly only dead-lettering for
# another reason every time has more than two or three.
STATES_LIMIT = 32


def read_frames(connection: Connection, data: memoryview) -> int:
    """Handle all whole frames in data; return how many bytes were used. What is left is the start of a frame.

    data must stay as it is until the host has handled the events: deliveries point into it. A frame over the limit is
    a fault as soon as the four bytes of its size are there. After the connection's end everything counts as used.
    """
    position, end = 0, len(data)
    while position < end:
        left = end - position
        room = min(ROWS_LIMIT, left // connection.usual_frame_bytes + LEAST_ROWS, left // SMALLEST_FRAME + 1)
        table = _FRAME_ROW * room
        limit = connection.incoming_frame_limit
        start = position
        rows, position, status = scan_frames(data, start, end, limit, table)
        if rows:
            if rows >= LEAST_ROWS or position - start >= SAMPLE_BYTES:
                connection.usual_frame_bytes = (position - start) // rows
            _take_rows(connection, data, table, rows)
        if not connection.is_reading:
            return end
        if status == SCAN_OK:
            if rows < room:
                break
        elif status == SCAN_TOO_LARGE and connection.incoming_frame_limit > limit:
            continue  # the open among these frames lifted the limit
        else:
            _refuse(connection, data, position, status, limit)
            return end
    return position


def _refuse(connection: Connection, data: memoryview, position: int, status: int, limit: int) -> None:
    text = "a frame whose size or data offset is impossible"
    if status == SCAN_TOO_LARGE:
        size = int.from_bytes(data[position : position + 4], "big")
        text = f"a frame of {size} bytes; {limit} are the most here"
    connection.fail_for(ConnectionFault(FRAMING_ERROR, text))


def _take_rows(connection: Connection, data: memoryview, table: array[int], rows: int) -> None:
    scratch = _DELIVERY_ROW * rows
    index = 0
    while index < rows and connection.is_reading:
        at = index * FRAME_WIDTH
        # A transfer with a state is decoded in full: the scan does not look into it.
        if table[at + F_CODE] == TRANSFER and table[at + F_STATE] < 0:
            taken = collect_deliveries(table, index, rows, scratch)
            if taken:
                connection.receive_rows(
                    table[at + F_CHANNEL], table[at + F_HANDLE], data, scratch[: taken * DELIVERY_WIDTH], taken
                )
                index += taken
                continue
            connection.receive_part(table[at + F_CHANNEL], table[at + F_HANDLE], _part(data, table, at))
        elif table[at + F_CODE] in RECEIVERS_SAY and (taken := _take_said(connection, data, table, index, rows)):
            index += taken
            continue
        else:
            connection.receive_frame(
                data, table[at + F_BODY], table[at + F_END], table[at + F_CHANNEL], table[at + F_TYPE]
            )
        index += 1


def _take_said(connection: Connection, data: memoryview, table: array[int], index: int, rows: int) -> int:
    """Handle the dispositions and flows from this row of the frame table on that are in usual form; how many frames
    these are.
    """
    said, stated, flows = _DISPOSITION_ROW * (rows - index), _STATE_ROW * STATES_LIMIT, _FLOW_ROW * (rows - index)
    taken, count, kinds, granted = collect_dispositions(data, table, index, rows, said, stated, flows)
    states = _states(data, table, stated, kinds) if kinds else ()
    if len(states) < kinds:  # the frame that says the next one is at fault: it goes alone, behind those before it
        stated = _STATE_ROW * len(states)
        taken, count, _, granted = collect_dispositions(data, table, index, rows, said, stated, flows)
    if taken > 1:
        own = _on_links(flows, granted, connection, _on_sessions(connection, table, index, index + taken), index)
        if own < taken:  # and so does the frame on a channel without a session, or for a link that is none
            stated = _STATE_ROW * len(states)
            taken, count, _, granted = collect_dispositions(data, table, index, index + own, said, stated, flows)
    if count > 1:
        _give(connection, said, merge_dispositions(said, count), states)
    elif count:
        connection.receive_dispositions(said[O_CHANNEL], said, count, states)
    if granted:
        _grant(connection, flows, granted)
    return taken


def _give(connection: Connection, said: array[int], count: int, states: Sequence[DeliveryState]) -> None:
    """Hand disposition rows over, those of one channel behind each other at once."""
    first = 0
    for channel, run in groupby(said[O_CHANNEL : count * DISPOSITION_WIDTH : DISPOSITION_WIDTH]):
        last = first + sum(1 for _ in run)
        part = said[first * DISPOSITION_WIDTH : last * DISPOSITION_WIDTH]
        connection.receive_dispositions(channel, part, last - first, states)
        first = last


def _grant(connection: Connection, flows: array[int], count: int) -> None:
    """Hand flow rows over, those of one channel behind each other at once."""
    first = 0
    for channel, run in groupby(flows[C_CHANNEL : count * FLOW_WIDTH : FLOW_WIDTH]):
        last = first + sum(1 for _ in run)
        connection.receive_flows(channel, [flow_said(flows, row) for row in range(first, last)])
        first = last


def _on_sessions(connection: Connection, table: array[int], first: int, last: int) -> int:
    """How many frames of a stretch come before the first one on a channel that carries no session."""
    channels = table[first * FRAME_WIDTH + F_CHANNEL : last * FRAME_WIDTH : FRAME_WIDTH]
    unknown = [channel for channel in set(channels) if not connection.is_known(channel)]
    return min(map(channels.index, unknown), default=last - first)


def _on_links(flows: array[int], count: int, connection: Connection, frames: int, first: int) -> int:
    """How many of so many frames of a stretch, which begins at `first`, come before the first flow for a link that is
    none.
    """
    end = count * FLOW_WIDTH
    channels, handles = flows[C_CHANNEL:end:FLOW_WIDTH], flows[C_HANDLE:end:FLOW_WIDTH]
    known = {channel: connection.handles_on(channel) for channel in set(channels)}
    for row, (channel, handle) in enumerate(zip(channels, handles, strict=True)):
        if handle >= 0 and handle not in known[channel]:
            return min(frames, flows[row * FLOW_WIDTH + C_FRAME] - first)
    return frames


def _states(data: memoryview, table: array[int], stated: array[int], kinds: int) -> list[DeliveryState]:
    """The states that were numbered, before the first that is none.

    Each is read from the whole frame that said it first: so it is legal if, and only if, that frame is.
    """
    states: list[DeliveryState] = []
    for index in stated[STATE_FRAME : kinds * STATE_WIDTH : STATE_WIDTH]:
        at = index * FRAME_WIDTH
        try:
            performative, _ = decode_performative(data, table[at + F_BODY], table[at + F_END])
        except DecodeError:
            break
        assert isinstance(performative, Disposition) and performative.state is not None  # as the kernel has found it
        states.append(performative.state)
    return states


def _part(data: memoryview, table: array[int], at: int) -> TransferPart:
    """The transfer in a row of the frame table; it is in usual form without a state, so it resumes nothing."""
    delivery_id = table[at + F_DELIVERY_ID]
    message_format = table[at + F_FORMAT]
    return TransferPart(
        delivery_id=None if delivery_id < 0 else delivery_id,
        tag_length=table[at + F_TAG_LENGTH],
        message_format=None if message_format < 0 else message_format,
        settled=table[at + F_SETTLED] == 1,
        more=table[at + F_MORE] == 1,
        aborted=table[at + F_ABORTED] == 1,
        resume=False,
        transaction=None,
        payload=data[table[at + F_PAYLOAD] : table[at + F_END]],
    )
