"""Over the throughput units: 503, Retry-After, and nothing stored. In virtual time to the event, and once live."""

from __future__ import annotations

import asyncio
import json
import time

from hubweir.gateway.amqp.tests.world import World
from hubweir.gateway.http.problem import BUSY_WAIT_S
from hubweir.gateway.http.tests.service import BATCH, Http
from hubweir.gateway.http.tests.test_send_events import post
from hubweir.testing.running_namespace import running_namespace
from hubweir.throughput_unit.usage import HourUsage

UNIT = 1_000


def stored(world: World) -> int:
    return sum(hosted.log.bounds.next_index for hosted in world.broker._residents)


def test_requests_over_the_units_get_503_with_the_time_to_wait_and_leave_nothing() -> None:
    world = World(hubs={"hub": 4})
    world.wait(lambda done: world.gateway.units.change(done, held=1, maximum=0))
    world.run_for(1_000)
    units = world.gateway.units.admission
    units.admit(0, UNIT - 3, world.env.monotonic_ms())  # somebody else has used all but three
    before = stored(world)
    answers = asyncio.run(post(world, b"x", count=8))
    statuses = sorted(answer.status for answer in answers if answer is not None)
    # What is asked for in one turn is one append a partition, and each is let in whole or not at all.
    assert len(statuses) == 8
    assert set(statuses) <= {201, 503} and statuses.count(503) >= 5
    assert stored(world) - before == statuses.count(201)
    for answer in answers:
        assert answer is not None
        assert ("retry-after" in answer.headers) is (answer.status == 503)
        if answer.status == 503:
            assert answer.headers["retry-after"] == str(BUSY_WAIT_S)
            assert "Error code: 50002" in answer.text
    assert world.process.budget.used == 0
    usage = HourUsage(*world.gateway.units.hours()[-1])
    assert usage.refused_events == statuses.count(503)


def test_after_the_wait_the_same_request_is_taken() -> None:
    world = World(hubs={"hub": 1})
    world.wait(lambda done: world.gateway.units.change(done, held=1, maximum=0))
    world.run_for(1_000)
    world.gateway.units.admission.admit(0, UNIT, world.env.monotonic_ms())
    (answer,) = asyncio.run(post(world, b"x", steps=1))
    assert answer is None or answer.status == 503
    world.run_for(BUSY_WAIT_S * 1_000)
    (answer,) = asyncio.run(post(world, b"x"))
    assert answer is not None and answer.status == 201


def test_batches_over_the_units_are_refused_whole_by_a_live_service() -> None:
    """Ten batches of 400 events as fast as they go, over one unit: what got 201 is there, nothing of the rest is."""
    items = json.dumps([{"Body": "event"}] * 400)
    with running_namespace(throughput_units=1) as namespace:
        namespace.create_event_hub("hub")
        http = Http(namespace)
        started = time.monotonic()
        answers = [http.call("POST", "/hub/messages", items, content_type=BATCH) for _ in range(10)]
        passed_s = time.monotonic() - started
        taken = [answer for answer in answers if answer.status == 201]
        busy = [answer for answer in answers if answer.status == 503]
        assert len(taken) + len(busy) == 10
        assert len(taken) * 400 <= UNIT * (1 + passed_s)
        assert len(taken) >= 2
        assert busy or passed_s > 2
        for answer in busy:
            assert answer.headers["retry-after"] == str(BUSY_WAIT_S)
        assert len(http.events("hub")) == len(taken) * 400
