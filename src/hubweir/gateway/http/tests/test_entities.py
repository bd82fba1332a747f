"""Hubs, groups and partitions over HTTP: the status of every call, and what is there afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from hubweir.gateway.http.atom import ARRAYS, ATOM, SERVICE_BUS
from hubweir.gateway.http.tests.service import BATCH, Http, token

NewHub = Callable[..., str]
ANY = {"If_Match": "*"}


def described(inside: str) -> str:
    return (
        f'<entry xmlns="{ATOM}"><content type="application/xml"><EventHubDescription xmlns="{SERVICE_BUS}">{inside}'
        "</EventHubDescription></content></entry>"
    )


def text(body: bytes, name: str) -> str | None:
    return ElementTree.fromstring(body).findtext(f".//{{{SERVICE_BUS}}}{name}")


def titles(body: bytes) -> list[str | None]:
    return [entry.findtext(f"{{{ATOM}}}title") for entry in ElementTree.fromstring(body).iter(f"{{{ATOM}}}entry")]


def test_the_life_of_a_hub(http: Http) -> None:
    asked = described("<MessageRetentionInDays>2</MessageRetentionInDays><PartitionCount>3</PartitionCount>")
    made = http.call("PUT", "/Made?api-version=2014-01", asked)
    assert made.status == 201
    assert made.headers["content-type"] == "application/atom+xml;type=entry;charset=utf-8"
    assert http.call("PUT", "/made", asked).status == 409
    for answer in (made, http.call("GET", "/made")):
        assert (text(answer.body, "MessageRetentionInDays"), text(answer.body, "PartitionCount")) == ("2", "3")
        ids = ElementTree.fromstring(answer.body).iter(f"{{{ARRAYS}}}string")
        assert [child.text for child in ids] == ["0", "1", "2"]
        assert titles(answer.body) == ["Made"]
    changed = http.call("PUT", "/made", asked.replace(">2<", ">1<"), **ANY)
    assert (changed.status, text(changed.body, "MessageRetentionInDays")) == (200, "1")
    assert text(http.call("GET", "/made").body, "MessageRetentionInDays") == "1"
    assert http.call("DELETE", "/made").status == 200
    assert [http.call(method, "/made").status for method in ("GET", "DELETE")] == [404, 404]
    assert http.call("PUT", "/made", asked, **ANY).status == 404
    assert http.call("POST", "/made/messages", "x").status == 404


def test_a_hub_without_a_description_has_the_defaults_of_the_reference(http: Http) -> None:
    made = http.call("PUT", "/plain/with/slashes")
    assert (made.status, text(made.body, "PartitionCount")) == (201, "16")
    assert text(http.call("GET", "/PLAIN/with/slashes").body, "MessageRetentionInDays") == "1"


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/bad", described("<PartitionCount>0</PartitionCount>"), 400),
        ("/bad", described("<PartitionCount>33</PartitionCount>"), 400),
        ("/bad", described("<MessageRetentionInDays>0</MessageRetentionInDays>"), 400),
        ("/bad", described("<MessageRetentionInDays>91</MessageRetentionInDays>"), 400),
        ("/bad", "<not xml", 400),
        ("/bad", '<!DOCTYPE a [<!ENTITY b "c">]>' + described(""), 400),
        ("/bad", "<a>" * 200_000, 413),
        ("/bad", described("<Status>Off</Status>"), 400),
        ("/bad", described(f"<UserMetadata>{'x' * 1025}</UserMetadata>"), 400),
        ("/bad%20name", described(""), 400),
        ("/x" * 129, described(""), 400),
    ],
)
def test_what_cannot_be_created_is_refused(http: Http, path: str, body: str, status: int) -> None:
    assert http.call("PUT", path, body).status == status
    assert http.call("GET", "/bad").status == 404


def test_an_update_changes_what_it_names_and_nothing_else(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(2)
    assert http.call("PUT", f"/{hub}", described("<PartitionCount>4</PartitionCount>"), **ANY).status == 400
    assert http.call("PUT", f"/{hub}", "", **ANY).status == 200
    assert http.call("PUT", f"/{hub}", "", If_Match='"tag"').status == 412
    found = http.call("GET", f"/{hub}")
    assert (text(found.body, "PartitionCount"), text(found.body, "MessageRetentionInDays")) == ("2", "1")
    assert http.call("PUT", f"/{hub}", found.body, **ANY).status == 200


def test_updates_at_the_same_time_leave_what_the_other_one_names(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(2)
    wishes = ("<MessageRetentionInDays>3</MessageRetentionInDays>", "<UserMetadata>ours</UserMetadata>") * 4
    start, answers = threading.Barrier(len(wishes)), list[int]()

    def send(wish: str) -> None:
        start.wait(30)
        answers.append(http.call("PUT", f"/{hub}", described(wish), **ANY).status)

    senders = [threading.Thread(target=send, args=(wish,)) for wish in wishes]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join(60)
    found = http.call("GET", f"/{hub}").body
    assert answers == [200] * len(wishes)
    assert (text(found, "MessageRetentionInDays"), text(found, "UserMetadata")) == ("3", "ours")


def test_status_and_metadata_are_kept_and_a_hub_that_takes_nothing_says_so(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(1)
    before = http.call("GET", f"/{hub}").body
    assert (text(before, "Status"), text(before, "UserMetadata")) == ("Active", None)
    assert text(before, "UpdatedAt") == text(before, "CreatedAt")
    assert http.call("POST", f"/{hub}/messages", "x").status == 201
    for status, sends in (("SendDisabled", 403), ("Disabled", 403), ("ReceiveDisabled", 201), ("Active", 201)):
        asked = described(f"<Status>{status}</Status><UserMetadata>&lt;{status}&gt; &amp; mine</UserMetadata>")
        changed = http.call("PUT", f"/{hub}", asked, **ANY)
        assert (changed.status, text(changed.body, "Status")) == (200, status)
        assert text(changed.body, "UserMetadata") == f"<{status}> & mine"
        assert (text(changed.body, "UpdatedAt") or "") >= (text(before, "UpdatedAt") or "z")
        assert http.call("POST", f"/{hub}/messages", "x").status == sends
    assert (
        http.call("PUT", f"/{hub}", described("<MessageRetentionInDays>2</MessageRetentionInDays>"), **ANY).status
        == 200
    )
    assert text(http.call("GET", f"/{hub}").body, "UserMetadata") == "<Active> & mine"
    http.call("PUT", f"/{hub}", described("<UserMetadata/>"), **ANY)
    assert text(http.call("GET", f"/{hub}").body, "UserMetadata") is None
    made = http.call("PUT", "/made-disabled", described("<Status>Disabled</Status><PartitionCount>1</PartitionCount>"))
    assert (made.status, text(made.body, "Status")) == (201, "Disabled")
    assert http.call("POST", "/made-disabled/messages", "x").status == 403


def test_rules_written_here_work_at_once_and_removed_ones_no_more(http: Http) -> None:
    def rules(*named: tuple[str, str, str]) -> str:
        return described(
            "<AuthorizationRules>"
            + "".join(
                f"<AuthorizationRule><Rights><AccessRights>{right}</AccessRights></Rights><KeyName>{name}</KeyName>"
                f"<PrimaryKey>{key}</PrimaryKey></AuthorizationRule>"
                for name, right, key in named
            )
            + "</AuthorizationRules>"
        )

    def sends(rule: str, key: str) -> int:
        return http.call("POST", "/ruled/messages", "x", auth=token("ruled", rule=rule, key=key)).status

    assert http.call("PUT", "/ruled", rules(("s", "Send", "one"), ("l", "Listen", "two"))).status == 201
    assert (sends("s", "one"), sends("l", "two")) == (201, 401)
    assert http.call("PUT", "/ruled", rules(("s", "Send", "rotated")), **ANY).status == 200
    assert (sends("s", "one"), sends("s", "rotated"), sends("l", "two")) == (401, 201, 401)
    assert http.call("PUT", "/ruled", "", **ANY).status == 200
    found = http.call("GET", "/ruled")
    assert (text(found.body, "KeyName"), text(found.body, "PrimaryKey")) == ("s", "rotated")
    assert len(text(found.body, "SecondaryKey") or "") == 44  # made by the service
    assert sends("s", text(found.body, "SecondaryKey") or "") == 201
    twice = rules(("s", "Send", "a"), ("S", "Send", "b"))
    assert http.call("PUT", "/ruled", twice, **ANY).status == 400
    assert sends("s", "rotated") == 201


def test_the_life_of_a_consumer_group(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    assert http.call("PUT", f"/{hub}/ConsumerGroups/Readers").status == 201
    assert http.call("PUT", f"/{hub}/consumergroups/readers").status == 409
    assert http.call("PUT", f"/{hub}/consumergroups/readers", **ANY).status == 200
    assert http.call("PUT", f"/{hub}/consumergroups/nobody", **ANY).status == 404
    noted = "<ConsumerGroupDescription><UserMetadata>mine</UserMetadata></ConsumerGroupDescription>"
    changed = http.call("PUT", f"/{hub}/consumergroups/readers", noted, **ANY)
    assert (changed.status, text(changed.body, "UserMetadata")) == (200, "mine")
    kept = http.call("PUT", f"/{hub}/consumergroups/readers", changed.body.replace(b"mine", b"yours"), **ANY).body
    assert text(kept, "CreatedAt") == text(changed.body, "CreatedAt")
    assert (text(kept, "UpdatedAt") or "") >= (text(changed.body, "UpdatedAt") or "z")
    assert text(http.call("GET", f"/{hub}/consumergroups/readers").body, "UserMetadata") == "yours"
    assert http.call("PUT", f"/{hub}/consumergroups/readers", noted.replace("mine", "x" * 1025), **ANY).status == 400
    assert titles(http.call("GET", f"/{hub}/consumergroups").body) == ["$Default", "Readers"]
    assert titles(http.call("GET", f"/{hub}/consumergroups/readers").body) == ["Readers"]
    assert http.call("DELETE", f"/{hub}/consumergroups/readers").status == 200
    assert http.call("DELETE", f"/{hub}/consumergroups/readers").status == 404
    assert http.call("GET", f"/{hub}/consumergroups/readers").status == 404
    assert http.call("DELETE", f"/{hub}/consumergroups/$default").status == 400
    assert http.call("PUT", f"/{hub}/consumergroups/no%20name").status == 400
    assert http.call("PUT", "/nothing-here/consumergroups/g").status == 404


def test_partitions_tell_their_bounds(http: Http, new_hub: NewHub) -> None:
    hub = new_hub(2)
    http.call("POST", f"/{hub}/partitions/1/messages", '[{"Body": "a"}, {"Body": "b"}]', content_type=BATCH)
    base = f"/{hub}/consumergroups/$Default/partitions"
    assert titles(http.call("GET", base).body) == ["0", "1"]
    empty, filled = (http.call("GET", f"{base}/{partition}") for partition in (0, 1))
    names = ("BeginSequenceNumber", "EndSequenceNumber", "LastEnqueuedOffset")
    assert [text(empty.body, name) for name in names] == ["-1", "-1", "-1"]
    assert [text(filled.body, name) for name in names][:2] == ["0", "1"]
    assert int(text(filled.body, "SizeInBytes") or "0") > 0
    assert (text(filled.body, "LastEnqueuedTimeUtc") or "").endswith("Z")
    for missing in (f"{base}/2", f"{base}/00", f"/{hub}/consumergroups/nobody/partitions/0"):
        assert http.call("GET", missing).status == 404


def test_lists_are_cut_by_skip_and_top(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    for number in range(3):
        http.call("PUT", f"/{hub}/consumergroups/g{number}")
    base = f"/{hub}/consumergroups"
    for query, expected in {
        "": ["$Default", "g0", "g1", "g2"],
        "?$skip=1&$top=2": ["g0", "g1"],
        "?%24skip=3": ["g2"],
        "?$skip=9": [],
        "?$top=0": [],
    }.items():
        answer = http.call("GET", base + query)
        assert (answer.status, titles(answer.body)) == (200, expected)
        assert answer.headers["content-type"] == "application/atom+xml;type=feed;charset=utf-8"
    for wrong in ("-1", "x", "1&$skip=2", "\u0661", "1e3", "9999999"):
        assert http.call("GET", f"{base}?$skip={wrong.replace(chr(0x661), '%D9%A1')}").status == 400
    assert hub in titles(http.call("GET", "/$Resources/Eventhubs?$top=100").body)


def test_managing_needs_the_right_and_existence_is_told_to_nobody_else(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    for path in (f"/{hub}", "/nothing-here", f"/{hub}/consumergroups/x", "/$Resources/Eventhubs"):
        assert http.call("GET", path, auth=None).status == 401
        assert http.call("GET", path, auth=token("another")).status == 401
    assert http.call("PUT", "/new-one", auth=token(hub)).status == 401
    assert http.call("GET", "/new-one").status == 404
    assert http.call("PUT", f"/{hub}/revokedpublishers/p", auth=token(f"{hub}/publishers/p")).status == 401
    assert http.call("GET", f"/{hub}/revokedpublishers/p").status == 405


def test_a_revoked_publisher_is_refused_listed_and_restored(http: Http, new_hub: NewHub) -> None:
    hub = new_hub()
    send = ("POST", f"/{hub}/publishers/p7/messages", "event")
    assert http.call(*send).status == 201
    assert http.call("PUT", f"/{hub}/revokedpublishers/p7").status == 201
    assert titles(http.call("GET", f"/{hub}/revokedpublishers").body) == ["p7"]
    assert http.call(*send).status == 401
    assert http.call("DELETE", f"/{hub}/revokedpublishers/p7").status == 200
    assert http.call("DELETE", f"/{hub}/revokedpublishers/p7").status == 404
    assert http.call(*send).status == 201


@pytest.mark.conformance
def test_retention_changes_under_a_reader_and_every_event_arrives_once(http: Http, new_hub: NewHub) -> None:
    from azure.eventhub import EventData, EventHubConsumerClient

    hub = new_hub()
    received: list[str] = []
    all_there = threading.Event()
    consumer = EventHubConsumerClient.from_connection_string(
        http.namespace.connection_string(), "$Default", eventhub_name=hub
    )

    def on_event(_: object, event: EventData | None) -> None:
        if event is not None:
            received.append(event.body_as_str())
        if len(received) == 40:
            all_there.set()

    reader = threading.Thread(target=lambda: consumer.receive(on_event, starting_position="-1"))
    reader.start()
    for number in range(40):
        if number % 10 == 5:
            days = 2 - number // 10 % 2
            asked = described(f"<MessageRetentionInDays>{days}</MessageRetentionInDays>")
            assert http.call("PUT", f"/{hub}", asked, **ANY).status == 200
        assert http.call("POST", f"/{hub}/messages", str(number)).status == 201
    arrived = all_there.wait(20)
    consumer.close()
    reader.join(20)
    assert arrived
    assert received == [str(number) for number in range(40)]
