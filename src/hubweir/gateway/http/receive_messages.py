"""POST and DELETE …/messages/head: the next message of a queue or a subscription, locked or taken away for good.

The request waits as long as its `timeout` says; 204: nothing came, of any fragment. A peer that goes away meanwhile
leaves nothing locked. Messages of sessions are not received here: over HTTP nobody could hold one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from hubweir.broker.commands.fragment import MessagesReceived
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, TIMED_OUT, ServiceError
from hubweir.gateway.http.entity_requests import uri_of
from hubweir.gateway.http.exchange import ClientGone, Request, Response
from hubweir.gateway.http.head_receive import HeadReceive
from hubweir.gateway.http.message_source import MessageSource, gone_where_absent, source_of
from hubweir.gateway.http.partitioned_receive import PartitionedReceive
from hubweir.gateway.http.pending_send import ANSWER_WAIT_S
from hubweir.gateway.http.received_message import message_response
from hubweir.gateway.http.route import Match
from hubweir.gateway.queue_admission import check_gives
from hubweir.namespace.messaging_description import delivery_of
from hubweir.queue.sub_queue import ReceiveMode, SubQueue

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

DEFAULT_TIMEOUT_S = 60
TIMEOUT_LIMIT_S = 3_600
# A fragment gives what it has at the end of its turn, so a request that does not want to wait gets this long.
LEAST_WAIT_S = 0.1
# Nothing is asked in a body.
BODY_BYTES = 64 * 1024


async def peek_lock(gateway: Gateway, request: Request, match: Match) -> Response:
    """201: the message, locked; Location is the address of its lock."""
    return await _receive(gateway, request, match, ReceiveMode.PEEK_LOCK, 201)


async def receive_and_delete(gateway: Gateway, request: Request, match: Match) -> Response:
    """200: the message, which is gone."""
    return await _receive(gateway, request, match, ReceiveMode.RECEIVE_AND_DELETE, 200)


async def _receive(gateway: Gateway, request: Request, match: Match, mode: ReceiveMode, status: int) -> Response:
    wait_s = max(LEAST_WAIT_S, timeout_s(request.query))
    await request.body(BODY_BYTES, "The body of a receive")
    slot = gateway.process.receive_slots.take_slot()
    try:
        with gone_where_absent():
            source = _checked(gateway, match.entity)
            receive: HeadReceive | PartitionedReceive
            if source.fragments.is_partitioned:
                first, is_lone = gateway.env.random_bytes(1)[0], gateway.settings.lone_receives
                receive = PartitionedReceive(source.fragments, source.sub_queue, mode, first, is_lone=is_lone)
            else:
                receive = HeadReceive(source.fragments.only, source.sub_queue, mode)
            try:
                receive.start(gateway.process.process_id)
                found = await _wait(receive, request, wait_s)
                if mode is ReceiveMode.PEEK_LOCK:
                    _checked(gateway, match.entity)  # its status may have changed meanwhile
                response = Response(204, content_type=None)
                trace = None
                if found.rows:
                    if gateway.process.tracer is not None:
                        trace = gateway.process.tracer.delivers(source.fragments.entity, found.run)
                    uri = uri_of(request, match.entity)
                    response = message_response(found, receive.place.id_prefix, status, uri)
                receive.taken()
            finally:
                receive.give_up()
    except BaseException:
        slot.give_back()
        raise
    if found.rows:
        gateway.counters["gateway.messages_delivered"] += 1
        traffic = gateway.traffic.of(source.fragments.entity)
        traffic.messages_out += 1
        traffic.bytes_out += len(response.body)
    slot.hold(len(response.body))

    def sent() -> None:
        slot.give_back()
        if trace is not None:
            trace.ended()

    return replace(response, on_sent=sent)


def _checked(gateway: Gateway, path: str) -> MessageSource:
    """The part of a queue or a subscription that the path names, when it gives messages out."""
    source = source_of(gateway, path)
    check_gives(source.entity, source.sub_queue)
    if delivery_of(source.entity).requires_session and source.sub_queue is SubQueue.MAIN:
        text = f"{source.entity.title} requires sessions, and those are not received over HTTP: receive over AMQP."
        raise ServiceError(NOT_ALLOWED, text)
    return source


async def _wait(receive: HeadReceive | PartitionedReceive, request: Request, wait_s: float) -> MessagesReceived:
    """What came in time. Raises ServiceError, and ClientGone when the peer went away before."""
    async with asyncio.TaskGroup() as group:
        gone = group.create_task(request.gone())
        for seconds in (wait_s, ANSWER_WAIT_S):
            await asyncio.wait((receive.done, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if gone.done() or receive.done.done():
                break
            receive.stop_waiting()
        gone.cancel()
    if not gone.cancelled():
        raise ClientGone("the peer went away while it waited for a message")
    if not receive.done.done():
        raise ServiceError(TIMED_OUT, f"The service gave no answer in {wait_s + ANSWER_WAIT_S:.0f} s.")
    result = receive.done.result()
    if isinstance(result, ServiceError):
        raise result
    return result


def timeout_s(query: str) -> int:
    """How long a request wants to wait. Raises ServiceError ARGUMENT_ERROR."""
    values = {name.lower(): found for name, found in parse_qs(query, keep_blank_values=True).items()}.get("timeout")
    if values is None:
        return DEFAULT_TIMEOUT_S
    text = values[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= 6 and int(text) <= TIMEOUT_LIMIT_S):
        wrong = f"The query parameter timeout is a whole number of seconds, from 0 to {TIMEOUT_LIMIT_S}."
        raise ServiceError(ARGUMENT_ERROR, wrong)
    return int(text)
