"""The pictures of docs/portal.md: a namespace with a day's work behind it, looked at in Chromium. `./run pictures`.

Each time all of them are made anew; what differs are the dates.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from hubweir.gateway.http.tests.service import Http
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.portal.tests.avro_files import written
from hubweir.testing.running_namespace import RunningNamespace, running_namespace
from tests.portal.chromium import Person, chromium, running_chromium

FOLDER = Path(__file__).resolve().parents[2] / "docs"
KEY = "SAS_KEY_VALUE"
WIDTH = 1200
BATCH, HOUR_MS = "application/vnd.microsoft.servicebus.json", 3_600_000
DISHES = ("two teas", "one coffee", "cake", "soup of the day", "the bill, please")
RECEIPT = {
    "type": "record", "name": "Receipt", "namespace": "kitchen",
    "fields": [
        {"name": "table", "type": "int"}, {"name": "dish", "type": "string"},
        {"name": "paid", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Picture:
    """name: of the file. page: what it shows. height: of the window.

    opened: which row of a list is open. drawn: what must be there first.
    """

    name: str
    page: str
    height: int = 760
    opened: int | None = None
    drawn: str = "main h1"


PICTURES = (
    Picture("portal-explorer.png", "events/orders?partition=0&count=10", opened=1),
    Picture("portal-avro.png", "events/receipts?view=avro", opened=0),
    Picture("portal-queue.png", "entity/kitchen"),
    Picture("portal-scale.png", "scale", 880, drawn=".uplot canvas"),
)


def draw(folder: Path, executable: str) -> None:
    """Make all of them in a folder."""
    with running_namespace(stores=2) as namespace, running_chromium(executable) as browser:
        work(namespace)
        person = Person(browser.new_context(), f"http://{namespace.host}:{namespace.port}")
        person.sign_in(KEY)
        for picture in PICTURES:
            take(person, picture, folder / picture.name)
        person.leave()
        assert person.offences == [], person.offences


def take(person: Person, picture: Picture, path: Path) -> None:
    person.page.set_viewport_size({"width": WIDTH, "height": picture.height})
    page = person.open(picture.page)
    page.locator(picture.drawn).first.wait_for()
    if picture.opened is not None:
        page.locator("summary").nth(picture.opened).click()
    page.screenshot(path=str(path), animations="disabled")


def work(namespace: RunningNamespace) -> None:
    """A day of a restaurant: events by the hour, receipts in Avro, a queue of which some messages died."""
    http = Http(namespace)
    namespace.create_event_hub("orders", partition_count=4, retention_ms=7 * 24 * HOUR_MS)
    namespace.create_event_hub("receipts")
    namespace.create(QueueDescription("kitchen", storage=StorageSettings(is_partitioned=True)))
    for hour in range(24):
        guests = 3 + 40 * (hour in (8, 12, 13, 19, 20)) + 5 * (hour % 5)
        send(http, "/orders/messages", [order(number) for number in range(guests)])
        http.call("POST", "/$testcontrol/clock", json.dumps({"forward_ms": HOUR_MS}))
    send(http, "/orders/partitions/0/messages", [order(number) for number in range(5)])
    receipts = [
        {"table": 7, "dish": dish, "paid": 1_767_225_600_000 + 60_000 * at} for at, dish in enumerate(DISHES[:2])
    ]
    answer = http.call("POST", "/receipts/messages", written(RECEIPT, receipts), content_type="avro/binary")
    assert answer.status == 201, answer
    for number in range(40):
        send(http, "/kitchen/messages", [{**order(number), "BrokerProperties": {"MessageId": f"order-{number}"}}])


def order(number: int) -> dict[str, object]:
    """An event or message as HTTP takes it in a batch."""
    body = json.dumps({"order": number, "dish": DISHES[number % len(DISHES)], "table": number % 9})
    return {"Body": body, "UserProperties": {"waiter": "Ada" if number % 2 else "Linus"}}


def send(http: Http, path: str, items: list[dict[str, object]]) -> None:
    answer = http.call("POST", path, json.dumps(items), content_type=BATCH)
    assert answer.status == 201, answer


def main() -> int:
    executable = chromium()
    if executable is None:
        print("pictures: no Chromium is installed (Debian: apt-get install chromium)", file=sys.stderr)
        return 1
    draw(FOLDER, executable)
    for picture in PICTURES:
        path = FOLDER / picture.name
        print(f"{path.stat().st_size:7,} bytes  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
