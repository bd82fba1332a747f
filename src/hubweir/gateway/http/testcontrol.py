"""Test control: the clock of the service, and faults of one namespace, for who may manage them.

What is ordered is judged in gateway/service_orders.py: in this process, or where there are several in their supervisor.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct, structs

from hubweir.broker.commands.testcontrol import ControlTold, FaultRates
from hubweir.errors import ARGUMENT_ERROR, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.faults import FaultKind
from hubweir.gateway.http.entity_requests import read_body
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.route import Match
from hubweir.gateway.service_orders import FORWARD_LIMIT_MS, Orders, check_profile
from hubweir.service_log import TEST_ORDERED

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Forward(Struct, frozen=True, forbid_unknown_fields=True):
    """A step of the clock. ends_tokens: tokens that end by then do."""

    forward_ms: Annotated[int, Meta(ge=0, le=FORWARD_LIMIT_MS)]
    ends_tokens: bool = False


async def show(gateway: Gateway, request: Request, match: Match) -> Response:
    return _state(gateway, await _orders(gateway).told(gateway.name))


async def forward_clock(gateway: Gateway, request: Request, match: Match) -> Response:
    """Set the clock forward; answered when every timer that was due by then has rung."""
    step = await _read(gateway, request, Forward)
    told = await _orders(gateway).forward(gateway.name, step.forward_ms, ends_tokens=step.ends_tokens)
    ahead_s = told.ahead_ms / 1_000
    _say(gateway, f"the clock went {step.forward_ms / 1_000:g} s forward, and is {ahead_s:g} s ahead")
    return _state(gateway, told)


async def order_faults(gateway: Gateway, request: Request, match: Match) -> Response:
    """From now on these strike, in the place of those before."""
    orders = _orders(gateway)
    told = await orders.order_faults(gateway.name, await _read(gateway, request, FaultRates))
    if told.faults is not None:  # else another order took its place meanwhile
        rates = told.faults.rates
        said = (f"{kind.value} {getattr(rates, kind.value):g}" for kind in FaultKind)
        _say(gateway, f"faults strike by the rates {', '.join(said)}, seed {rates.seed}")
    return _state(gateway, told)


async def end_faults(gateway: Gateway, request: Request, match: Match) -> Response:
    told = await _orders(gateway).order_faults(gateway.name, None)
    _say(gateway, "no fault strikes any more")
    return _state(gateway, told)


def _say(gateway: Gateway, what: str) -> None:
    TEST_ORDERED.say(logger, namespace=gateway.name, what=what)


def _orders(gateway: Gateway) -> Orders:
    """Where orders go; ServiceError when the namespace takes none, so that nobody else is asked for it."""
    check_profile(gateway.settings.profile, f"'{gateway.name}'")
    if gateway.process.orders is None:
        raise ServiceError(NOT_IMPLEMENTED, "This process takes no orders of tests.")
    return gateway.process.orders


async def _read(gateway: Gateway, request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await read_body(gateway, request), type=kind)
    except msgspec.MsgspecError as error:
        raise ServiceError(ARGUMENT_ERROR, f"The body is not what it must be: {error}.") from None


def _state(gateway: Gateway, told: ControlTold) -> Response:
    faults = None if told.faults is None else {**structs.asdict(told.faults.rates), "struck": told.struck}
    clock = {"now_ms": gateway.env.now_ms(), "ahead_ms": told.ahead_ms}
    return _json({"clock": clock, "faults": faults})


def _json(document: object) -> Response:
    return Response(200, json.dumps(document).encode(), "application/json", {"cache-control": "no-store"})
