"""Test control: the clock of the service, and faults of one namespace, for who may manage them.

Only a namespace of the development profile has it. The clock is the whole service's, so it goes forward only where all
namespaces are of that profile. One process alone has a clock to set and links to strike: with broker processes both
are refused.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec
from msgspec import Meta, Struct

from hubweir.drivers.service_clock import ServiceClock
from hubweir.errors import ARGUMENT_ERROR, NOT_ALLOWED, NOT_IMPLEMENTED, ServiceError
from hubweir.gateway.faults import FaultKind, FaultRates, Faults
from hubweir.gateway.http.entity_requests import read_body
from hubweir.gateway.http.exchange import Request, Response
from hubweir.gateway.http.route import Match
from hubweir.namespace.tiers import DEVELOPMENT
from hubweir.service_log import TEST_ORDERED

if TYPE_CHECKING:
    from hubweir.gateway.gateway import Gateway

logger = logging.getLogger(__name__)

T = TypeVar("T")

DAY_MS = 24 * 3_600_000
FORWARD_LIMIT_MS = 3_660 * DAY_MS  # ten years, all steps together: every calendar of a client still has the time
RUNG_S = 5.0  # a hundred thousand locks that end at once take less


class Forward(Struct, frozen=True, forbid_unknown_fields=True):
    """A step of the clock. ends_tokens: tokens that end by then do."""

    forward_ms: Annotated[int, Meta(ge=0, le=FORWARD_LIMIT_MS)]
    ends_tokens: bool = False


async def show(gateway: Gateway, request: Request, match: Match) -> Response:
    _check_profile(gateway, gateway)
    return _state(gateway)


async def forward_clock(gateway: Gateway, request: Request, match: Match) -> Response:
    """Set the clock forward; answered when every timer that was due by then has rung."""
    step = await _read(gateway, request, Forward)
    # Behind the body, which may take its time: a namespace that was made meanwhile counts, too.
    for each in gateway.process.gateways:
        _check_profile(gateway, each)
    clock = _clock(gateway)
    if clock.ahead.clock_ms + step.forward_ms > FORWARD_LIMIT_MS:
        days = FORWARD_LIMIT_MS // DAY_MS
        raise ServiceError(ARGUMENT_ERROR, f"The clock would be over {days} days ahead: start the service anew.")
    clock.forward(step.forward_ms, ends_tokens=step.ends_tokens)
    await clock.rung(limit_s=RUNG_S)
    ahead_s = clock.ahead.clock_ms / 1_000
    _say(gateway, f"the clock went {step.forward_ms / 1_000:g} s forward, and is {ahead_s:g} s ahead")
    return _state(gateway)


async def order_faults(gateway: Gateway, request: Request, match: Match) -> Response:
    """From now on these strike, in the place of those before."""
    _check_profile(gateway, gateway)
    _clock(gateway)
    faults = Faults(await _read(gateway, request, FaultRates), gateway.env)
    gateway.order_faults(faults)
    rates = (f"{kind.value} {getattr(faults.rates, kind.value):g}" for kind in FaultKind)
    _say(gateway, f"faults strike by the rates {', '.join(rates)}, seed {faults.seed}")
    return _state(gateway)


async def end_faults(gateway: Gateway, request: Request, match: Match) -> Response:
    _check_profile(gateway, gateway)
    gateway.order_faults(None)
    _say(gateway, "no fault strikes any more")
    return _state(gateway)


def _say(gateway: Gateway, what: str) -> None:
    TEST_ORDERED.say(logger, namespace=gateway.settings.namespace, what=what)


def _check_profile(asked: Gateway, gateway: Gateway) -> None:
    """ServiceError unless a namespace is for development. asked: the one that was asked; no other is named."""
    profile = gateway.settings.profile
    if profile is not DEVELOPMENT:
        name = f"'{gateway.settings.namespace}'" if gateway is asked else "another namespace of this service"
        text = f"Test control is of the development profile alone: {name} has the profile {profile.name}."
        raise ServiceError(NOT_ALLOWED, text)


def _clock(gateway: Gateway) -> ServiceClock:
    clock = gateway.process.clock
    if clock is None:
        text = "This service has several processes, each with a clock and links of its own: start it without --brokers."
        raise ServiceError(NOT_IMPLEMENTED, text)
    return clock


async def _read(gateway: Gateway, request: Request, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(await read_body(gateway, request), type=kind)
    except msgspec.MsgspecError as error:
        raise ServiceError(ARGUMENT_ERROR, f"The body is not what it must be: {error}.") from None


def _state(gateway: Gateway) -> Response:
    faults = gateway.faults
    told = None
    if faults is not None:
        struck = {fault.value: count for fault, count in faults.struck.items()}
        told = {**msgspec.to_builtins(faults.rates), "seed": faults.seed, "struck": struck}
    clock = {"now_ms": gateway.env.now_ms(), "ahead_ms": gateway.env.ahead.clock_ms}
    return _json({"clock": clock, "faults": told})


def _json(document: object) -> Response:
    return Response(200, json.dumps(document).encode(), "application/json", {"cache-control": "no-store"})
