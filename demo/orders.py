"""The demo's second act: flights as orders, which workers take from a topic's subscriptions.

A topic `departures` has a subscription for each of four carriers, with one rule of SQL and with sessions: an aircraft
is a session. Workers take the flights aircraft by aircraft and send a record of each to a queue that drops duplicates.
One of them is killed with SIGKILL while it holds locks. In the end every flight is recorded once, under its carrier,
and the flights of each aircraft are in the order of the CSV.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest

import msgspec
from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiveMode
from rich.console import Console
from rich.table import Table

from crew import Crew, Done
from flight_data import Flight
from hubweir.client.administration import Administration
from hubweir.client.atom_documents import EntityType
from hubweir.namespace.connection_string import ConnectionString
from report import Report
from tally import Tally, differences

TOPIC, QUEUE = "departures", "handled"
CARRIERS = ("UA", "DL", "AA", "B6")
# Of each carrier, and of each aircraft.
AIRCRAFT_COUNT, FLIGHT_COUNT = 50, 40
# A step that takes longer than this has failed; the act is meant to take well under 40 s.
STEP_LIMIT_S = 120.0
SEND_COUNT, READ_COUNT = 200, 500
# Until all records are there, and to see whether one more comes.
WAIT_S, QUIET_S = 5.0, 0.5
SAID_LINES = 5
ByTail = Iterable[tuple[str | None, list[Flight]]]


class _Name(msgspec.Struct):
    carrier: str
    flight: int
    origin: str
    time_hour: str


_DECODER = msgspec.json.Decoder(_Name)


@dataclass(slots=True)
class Records:
    """What is known of flights: a tally by aircraft, and how many there are of each carrier."""

    tally: Tally = field(default_factory=Tally)
    carriers: Counter[str] = field(default_factory=Counter)

    def add(self, aircraft: str, carrier: str, body: bytes) -> None:
        self.tally.add(aircraft, body)
        self.carriers[carrier] += 1


def run(connection_string: str, by_tail: ByTail, report: Report) -> None:
    """The act, on a server that runs: publish, work with one worker killed, read the records, hold them to the CSV."""
    orders = choose(by_tail)
    expected = Records()
    for flight in chain(*orders.values()):
        expected.add(str(flight.tail), flight.carrier, flight.body)
    count = expected.tally.count
    administration = Administration(ConnectionString.parse(connection_string))
    create_entities(administration)
    with ServiceBusClient.from_connection_string(connection_string) as client:
        with report.step("orders sent to a topic", count, noun="flights") as progress:
            send(client, in_turn(orders.values()), progress)
        report.check("sending", [])
        with report.step("handled, a worker killed", count, noun="flights") as progress:
            done = Crew(connection_string, TOPIC, list(CARRIERS), QUEUE).work(
                count, seconds=STEP_LIMIT_S, progress=progress
            )
        report.check("the workers", left_over(administration, done))
        with report.step("records read", count, noun="records") as progress:
            seen = read(client, count, progress)
        report.check("the records", findings(expected, seen))
    tell_kill(report.console, done, seen)
    show(report.console, orders, expected, seen)


def choose(by_tail: ByTail) -> dict[str, list[Flight]]:
    """The first flights of each carrier's first aircraft in the CSV, of those that fly for one carrier only."""
    chosen: dict[str, list[Flight]] = {}
    found: Counter[str] = Counter()
    for tail, flights in by_tail:
        carrier = flights[0].carrier
        if tail is None or carrier not in CARRIERS or found[carrier] == AIRCRAFT_COUNT or len(flights) < FLIGHT_COUNT:
            continue
        if all(flight.carrier == carrier for flight in flights):
            chosen[tail] = flights[:FLIGHT_COUNT]
            found[carrier] += 1
    return chosen


def in_turn(orders: Iterable[list[Flight]]) -> Iterator[Flight]:
    """The first flight of each aircraft, then the second of each, and so on: sessions come mixed."""
    return (flight for turn in zip_longest(*orders) for flight in turn if flight is not None)


def message_id(flight: Flight) -> str:
    """What names a flight in the whole year: it leaves an airport once in the hour it was planned for."""
    name = _DECODER.decode(flight.body)
    return f"{name.carrier} {name.flight} {name.origin} {name.time_hour}"


def create_entities(administration: Administration) -> None:
    """The topic, a subscription with sessions and one rule for each carrier, and the queue for records."""
    administration.create(EntityType.TOPIC, TOPIC, {})
    for carrier in CARRIERS:
        path = f"{TOPIC}/Subscriptions/{carrier}"
        administration.create(EntityType.SUBSCRIPTION, path, {"RequiresSession": "true"})
        rule = f"<Filter i:type=\"SqlFilter\"><SqlExpression>carrier = '{carrier}'</SqlExpression></Filter>"
        administration.create(EntityType.RULE, f"{path}/Rules/carrier", {}, rule)
        administration.delete(f"{path}/Rules/$Default")
    administration.create(EntityType.QUEUE, QUEUE, {"RequiresDuplicateDetection": "true"})


def send(client: ServiceBusClient, flights: Iterator[Flight], progress: Callable[[int], None]) -> None:
    """Send every flight to the topic, its aircraft as the session, its carrier as a property for the rules."""
    sent = 0
    with client.get_topic_sender(TOPIC) as sender:
        while part := list(islice(flights, SEND_COUNT)):
            sender.send_messages(
                [
                    ServiceBusMessage(
                        flight.body,
                        session_id=flight.tail,
                        message_id=message_id(flight),
                        application_properties={"carrier": flight.carrier},
                    )
                    for flight in part
                ]
            )
            sent += len(part)
            progress(sent)


def left_over(administration: Administration, done: Done) -> list[str]:
    """What the workers left in the subscriptions, and whether one was killed as it was meant to be."""
    found = done.said[-SAID_LINES:]
    if not done.held:
        found.append("no worker was killed while it held locks")
    for carrier in CARRIERS:
        counts = administration.get(f"{TOPIC}/Subscriptions/{carrier}").counts
        left = {name: count for name, count in counts.items() if count}
        if left:
            found.append(f"the subscription {carrier} is left with {left}")
    return found


def read(client: ServiceBusClient, count: int, progress: Callable[[int], None]) -> Records:
    """Take every record out of the queue, until there are enough and none is left, or none comes."""
    seen = Records()
    with client.get_queue_receiver(
        QUEUE, receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE, prefetch_count=READ_COUNT
    ) as receiver:
        limit = time.monotonic() + STEP_LIMIT_S
        while time.monotonic() < limit:
            records = receiver.receive_messages(
                READ_COUNT, max_wait_time=WAIT_S if seen.tally.count < count else QUIET_S
            )
            if not records:
                break
            for record in records:
                properties = record.application_properties
                seen.add(properties[b"aircraft"].decode(), properties[b"carrier"].decode(), b"".join(record.body))
            progress(seen.tally.count)
    return seen


def findings(expected: Records, seen: Records) -> list[str]:
    """What is wrong with the records, one sentence a finding: flights lost or doubled, order, carriers."""
    found = differences(expected.tally, seen.tally)
    for carrier in sorted(expected.carriers | seen.carriers):
        if expected.carriers[carrier] != seen.carriers[carrier]:
            found.append(f"{carrier}: {expected.carriers[carrier]} flights, {seen.carriers[carrier]} records")
    return found


def tell_kill(console: Console, done: Done, seen: Records) -> None:
    locks = sum(held.received for held in done.held)
    doubled = done.received - seen.tally.count
    console.print(
        f"a worker was killed with SIGKILL while it held {len(done.held)} aircraft and {locks} locks: "
        f"{done.again} flights came again, {doubled} records were dropped as duplicates",
        soft_wrap=True,
    )


def show(console: Console, orders: dict[str, list[Flight]], expected: Records, seen: Records) -> None:
    """Flights by carrier, from the CSV and from the records, and of how many aircraft the order is the CSV's."""
    table = Table("carrier", "aircraft", "in order", "flights", "records")
    for carrier in CARRIERS:
        aircraft = [tail for tail, flights in orders.items() if flights[0].carrier == carrier]
        same = [tail for tail in aircraft if in_order(tail, expected, seen)]
        flights, records = expected.carriers[carrier], seen.carriers[carrier]
        table.add_row(carrier, str(len(aircraft)), str(len(same)), f"{flights:,}", f"{records:,}")
    console.print(table)


def in_order(tail: str, expected: Records, seen: Records) -> bool:
    one, other = expected.tally.keyed[tail], seen.tally.keyed.get(tail)
    return other is not None and one.digest() == other.digest()
