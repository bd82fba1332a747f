"""Queues, topics, subscriptions and rules over HTTP, byte by byte: status, order of elements, texts clients match."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from hubweir.gateway.http.atom import ATOM
from hubweir.gateway.http.messaging_content import time_text
from hubweir.gateway.http.tests.messaging_forms import (
    ANY,
    QUEUE,
    SUBSCRIPTION,
    TOPIC,
    atom,
    content,
    described,
    detail,
    names,
    rule,
    sql_action,
    sql_filter,
    text,
)
from hubweir.gateway.http.tests.service import Http, token
from hubweir.namespace.error_text import timestamp
from hubweir.namespace.rights import Rights

BAD_DEFAULT_RULE = f"<DefaultRuleDescription>{sql_filter('a =')}</DefaultRuleDescription>"
QUEUE_MEMBERS = [
    *("LockDuration", "MaxSizeInMegabytes", "RequiresDuplicateDetection", "RequiresSession"),
    *("DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration", "DuplicateDetectionHistoryTimeWindow"),
    *("MaxDeliveryCount", "EnableBatchedOperations", "SizeInBytes", "MessageCount", "IsAnonymousAccessible"),
    *("AuthorizationRules", "Status", "ForwardTo", "UserMetadata", "CreatedAt", "UpdatedAt", "AccessedAt"),
    *("SupportOrdering", "CountDetails", "AutoDeleteOnIdle", "EnablePartitioning", "ForwardDeadLetteredMessagesTo"),
    *("EntityAvailabilityStatus", "EnableExpress", "MaxMessageSizeInKilobytes"),
]
TOPIC_MEMBERS = [
    *("DefaultMessageTimeToLive", "MaxSizeInMegabytes", "RequiresDuplicateDetection"),
    *("DuplicateDetectionHistoryTimeWindow", "EnableBatchedOperations", "SizeInBytes"),
    *("FilteringMessagesBeforePublishing", "IsAnonymousAccessible", "AuthorizationRules", "Status", "UserMetadata"),
    *("CreatedAt", "UpdatedAt", "AccessedAt", "SupportOrdering", "CountDetails", "SubscriptionCount", "SqlFilterCount"),
    *("CorrelationFilterCount", "AutoDeleteOnIdle", "EnablePartitioning", "EntityAvailabilityStatus"),
    *("EnableSubscriptionPartitioning", "EnableExpress", "MaxMessageSizeInKilobytes"),
]
SUBSCRIPTION_MEMBERS = [
    *("LockDuration", "RequiresSession", "DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration"),
    *("DeadLetteringOnFilterEvaluationExceptions", "MessageCount", "MaxDeliveryCount", "EnableBatchedOperations"),
    *("Status", "ForwardTo", "CreatedAt", "UpdatedAt", "AccessedAt", "CountDetails", "UserMetadata"),
    *("ForwardDeadLetteredMessagesTo", "AutoDeleteOnIdle", "EntityAvailabilityStatus"),
]


def test_a_queue_is_told_in_the_service_s_order(clean: Http) -> None:
    more = "<ForwardTo>sb://h/q2</ForwardTo><UserMetadata>mine</UserMetadata>"
    more += "<ForwardDeadLetteredMessagesTo>Q2</ForwardDeadLetteredMessagesTo>"
    assert clean.call("PUT", "/q2", described(QUEUE)).status == 201
    made = clean.call("PUT", "/Q1?api-version=2021-05", described(QUEUE, more))
    assert made.status == 201 and made.headers["content-type"] == "application/atom+xml;type=entry;charset=utf-8"
    for answer in (made, clean.call("GET", "/q1?api-version=2021-05&enrich=false")):
        assert names(content(answer.body, QUEUE)) == QUEUE_MEMBERS
        assert atom(answer.body, "title") == ["Q1"]
        (uri,) = atom(answer.body, "id")
        assert uri is not None and uri.endswith("/Q1?api-version=2021-05")
        assert text(answer.body, "ForwardTo") == "sb://h/q2"
        assert text(answer.body, "ForwardDeadLetteredMessagesTo") == f"sb://{clean.namespace.host}/Q2"
        assert text(answer.body, "AccessedAt") == "0001-01-01T00:00:00Z"


def test_counts_have_a_prefix_that_their_parent_alone_declares(clean: Http) -> None:
    body = clean.call("PUT", "/q", described(QUEUE)).text
    counts = body[body.index("<CountDetails") : body.index("</CountDetails>")]
    assert counts.startswith(
        '<CountDetails xmlns:d2p1="http://schemas.microsoft.com/netservices/2011/06/servicebus">'
        "<d2p1:ActiveMessageCount>0</d2p1:ActiveMessageCount>"
    )
    assert counts.count("xmlns") == 1 and counts.count("<d2p1:") == 5


def test_topics_and_subscriptions_are_told_in_the_service_s_order(clean: Http) -> None:
    metadata = "<UserMetadata>mine</UserMetadata>"
    topic = clean.call("PUT", "/News?api-version=2024-05", described(TOPIC, metadata))
    assert (topic.status, names(content(topic.body, TOPIC))) == (201, TOPIC_MEMBERS)
    more = metadata + "<ForwardTo>news</ForwardTo><ForwardDeadLetteredMessagesTo>news</ForwardDeadLetteredMessagesTo>"
    made = clean.call("PUT", "/news/subscriptions/All", described(SUBSCRIPTION, more))
    assert (made.status, names(content(made.body, SUBSCRIPTION))) == (201, SUBSCRIPTION_MEMBERS)
    assert atom(made.body, "title") == ["All"]
    (uri,) = atom(made.body, "id")
    assert uri is not None and uri.endswith("/News/Subscriptions/All")
    assert text(made.body, "AccessedAt") == text(made.body, "CreatedAt")
    (uri,) = atom(clean.call("GET", "/news/subscriptions/all/rules/$default").body, "id")
    assert uri is not None and uri.endswith("/News/Subscriptions/All/Rules/$Default")


def test_filters_are_counted_when_the_version_asks(clean: Http) -> None:
    clean.call("PUT", "/t", described(TOPIC))
    clean.call("PUT", "/t/subscriptions/s", described(SUBSCRIPTION))
    correlation = rule('<Filter i:type="CorrelationFilter"><Label>x</Label></Filter>')
    assert clean.call("PUT", "/t/subscriptions/s/rules/c", correlation).status == 201
    counted = clean.call("GET", "/t?api-version=2024-05").body
    assert [text(counted, name) for name in ("SqlFilterCount", "CorrelationFilterCount")] == ["1", "1"]
    assert text(clean.call("GET", "/t?api-version=2021-05").body, "SqlFilterCount") is None


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ("PT45S", "PT45S"), ("PT1M0S", "PT1M0S"), ("PT0M45.5S", "PT0M45.5S"), ("", "PT1M"), ("00:01:00", "00:01:00"),
    ],
)  # fmt: skip
def test_a_duration_comes_back_as_it_was_sent(clean: Http, sent: str, told: str) -> None:
    made = clean.call("PUT", "/q", described(QUEUE, f"<LockDuration>{sent}</LockDuration>"))
    assert text(made.body, "LockDuration") == told == text(clean.call("GET", "/q").body, "LockDuration")


def test_every_spelling_of_the_longest_duration_becomes_one(clean: Http) -> None:
    for sent in ("P10675199DT2H48M5.47758S", "P10675199DT2H48M5.4775807S", "P10675199DT2H48M5.477581S"):
        inside = f"<AutoDeleteOnIdle>{sent}</AutoDeleteOnIdle>"
        clean.call("PUT", "/q", described(QUEUE, inside))
        made = clean.call("PUT", "/q", described(QUEUE, inside), **ANY)
        assert (made.status, text(made.body, "AutoDeleteOnIdle")) == (200, "P10675199DT2H48M5.4775807S")


def test_an_update_replaces_the_whole_and_keeps_rules(clean: Http) -> None:
    inside = "<MaxDeliveryCount>3</MaxDeliveryCount><UserMetadata>mine</UserMetadata>"
    rules = (
        '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights><AccessRights>Send'
        "</AccessRights></Rights><KeyName>r</KeyName></AuthorizationRule></AuthorizationRules>"
    )
    assert clean.call("PUT", "/q", described(QUEUE, inside + rules)).status == 201
    changed = clean.call("PUT", "/q", described(QUEUE), **ANY)
    assert (changed.status, text(changed.body, "MaxDeliveryCount")) == (200, "10")
    assert (text(changed.body, "UserMetadata"), text(changed.body, "KeyName")) == (None, "r")
    gone = clean.call("PUT", "/q", described(QUEUE, "<AuthorizationRules/>"), **ANY)
    assert text(gone.body, "KeyName") is None


def test_conditions_and_kinds_decide_what_a_request_does(clean: Http) -> None:
    assert clean.call("PUT", "/q", described(QUEUE), **ANY).status == 404
    assert clean.call("PUT", "/q", described(QUEUE)).status == 201
    again = clean.call("PUT", "/Q", described(QUEUE))
    assert again.status == 409 and detail(again.body).startswith("SubCode=40900. Queue 'q' exists already.")
    assert clean.call("PUT", "/q", described(TOPIC)).status == 409
    assert clean.call("PUT", "/q", described(TOPIC), **ANY).status == 404
    for method in ("PUT", "DELETE"):
        refused = clean.call(method, "/q", described(QUEUE) if method == "PUT" else "", If_Match='"tag"')
        assert refused.status == 412
    assert clean.call("GET", "/q/subscriptions").status == 404
    assert clean.call("PUT", "/q/subscriptions/s", described(SUBSCRIPTION)).status == 404
    assert clean.call("DELETE", "/q", **ANY).status == 200


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_the_root_is_an_error_in_xml(http: Http, method: str) -> None:
    for headers in ({}, ANY):
        answer = http.call(method, "/?api-version=2021-05", described(QUEUE) if method == "PUT" else "", **headers)
        assert 400 <= answer.status < 500 and answer.text.startswith("<Error><Code>4")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/q", described(QUEUE, "<LockDuration>soon</LockDuration>"), 400),
        ("/q", described(QUEUE, "<LockDuration>PT6M</LockDuration>"), 400),
        ("/q", described(QUEUE, "<MaxDeliveryCount>ten</MaxDeliveryCount>"), 400),
        ("/q", described(QUEUE, "<MaxDeliveryCount>-1</MaxDeliveryCount>"), 400),
        ("/q", described(QUEUE, "<RequiresSession>yes</RequiresSession>"), 400),
        ("/q", described(QUEUE, "<Status>Creating</Status>"), 400),
        ("/q", described(QUEUE, "<ForwardTo>missing</ForwardTo>"), 404),
        ("/q", described("Nothing"), 400),
        ("/" + "q" * 261, described(QUEUE), 400),
        ("/missing/subscriptions/s", described(SUBSCRIPTION), 404),
        ("/t/subscriptions/" + "s" * 51, described(SUBSCRIPTION), 400),
        ("/t/subscriptions/s", described(QUEUE), 400),
        ("/t/subscriptions/there/rules/" + "r" * 51, rule('<Filter i:type="TrueFilter"/>'), 400),
        ("/t/subscriptions/there/rules/r", "", 400),
        ("/t/subscriptions/there/rules/r", rule('<Filter i:type="OtherFilter"/>'), 400),
        ("/t/subscriptions/there/rules/r", rule('<Filter i:type="SqlFilter"/>'), 400),
        ("/t/subscriptions/there/rules/r", rule(sql_filter("a = 1 b")), 400),
        ("/t/subscriptions/there/rules/r", rule(f"{sql_filter('a = 1')}{sql_action('a = 1')}"), 400),
        (
            "/t/subscriptions/s",
            described(SUBSCRIPTION, f"<DefaultRuleDescription>{sql_filter('a = ')}</DefaultRuleDescription>"),
            400,
        ),
        ("/t/subscriptions/there/rules/r", rule('<Filter i:type="TrueFilter"/><Action i:type="Other"/>'), 400),
        ("/t/subscriptions/there/rules/r", rule('<Filter i:type="TrueFilter"/><Action i:type="SqlRuleAction"/>'), 400),
        ("/t/subscriptions/missing/rules/r", rule('<Filter i:type="TrueFilter"/>'), 404),
    ],
)
def test_what_cannot_be_is_refused(clean: Http, path: str, body: str, status: int) -> None:
    clean.call("PUT", "/t", described(TOPIC))
    clean.call("PUT", "/t/subscriptions/there", described(SUBSCRIPTION))
    refused = clean.call("PUT", path, body)
    assert refused.status == status and detail(refused.body).startswith(f"SubCode={status}00. "), refused.text
    assert clean.call("GET", path).status == 404


def test_bad_sql_is_refused_with_its_place_and_word(clean: Http) -> None:
    """SB-110."""
    clean.call("PUT", "/t", described(TOPIC))
    clean.call("PUT", "/t/subscriptions/there", described(SUBSCRIPTION))
    refused = clean.call("PUT", "/t/subscriptions/there/rules/r", rule(sql_filter("color = 'blue' ADN size = 1")))
    assert refused.status == 400 and "at character 16, near 'ADN'" in detail(refused.body)
    good = rule(sql_filter("color = 'blue' AND size = 1") + sql_action("SET size = 2"))
    assert clean.call("PUT", "/t/subscriptions/there/rules/r", good).status == 201


def test_lists_have_a_link_to_the_next_page_only_when_there_is_one(clean: Http) -> None:
    for name in ("b", "a", "C"):
        clean.call("PUT", f"/{name}", described(QUEUE))
    pages, path = [], "/$Resources/queues?$skip=0&$top=2&api-version=2021-05"
    first = clean.call("GET", path)
    (link,) = [each for each in ElementTree.fromstring(first.body) if each.get("rel") == "next"]
    assert [each.get("rel") for each in ElementTree.fromstring(first.body).findall(f"{{{ATOM}}}link")] == [
        "self",
        "next",
    ]
    href = link.get("href") or ""
    assert href.endswith("/$Resources/queues?$skip=2&$top=2&api-version=2021-05")
    second = clean.call("GET", "/" + href.split("/", 3)[3].replace("$", "%24"))
    for page in (first, second):
        pages.append(atom(page.body, "title")[1:])
    assert pages == [["a", "b"], ["C"]]
    assert 'rel="next"' not in second.text
    assert 'rel="next"' not in clean.call("GET", "/$Resources/queues?$skip=0&$top=3").text
    assert atom(clean.call("GET", "/$resources/topics").body, "title") == ["Topics"]


def test_the_namespace_tells_itself(http: Http) -> None:
    answer = http.call("GET", "/$namespaceinfo?api-version=2021-05")
    assert (answer.status, atom(answer.body, "title")) == (200, ["hubweir"])
    members = names(content(answer.body, "NamespaceInfo"))
    assert members == ["Alias", "CreatedTime", "MessagingSKU", "ModifiedTime", "Name", "NamespaceType"]
    assert (text(answer.body, "MessagingSKU"), text(answer.body, "NamespaceType")) == ("Standard", "Messaging")


def test_the_namespace_tells_when_it_was_made_and_when_it_was_changed_last(http: Http) -> None:
    """An entry's own times are whole seconds, so changes go on until the second is over."""
    path = "/subscriptions/S/resourceGroups/G/providers/Microsoft.ServiceBus/namespaces/hubweir"
    namespace, changes = http.namespace.service.gateway.namespace, 0
    while namespace.description.changed_at_ms < namespace.description.created_at_ms + 1_000:
        changes += 1
        assert http.call("PATCH", path, b'{"tags": {"changes": "%d"}}' % changes).status == 200
    answer = http.call("GET", "/$namespaceinfo?api-version=2021-05")
    created, changed = namespace.description.created_at_ms, namespace.description.changed_at_ms
    told = [text(answer.body, name) for name in ("CreatedTime", "ModifiedTime")]
    assert told == [time_text(created), time_text(changed)]
    assert atom(answer.body, "published") + atom(answer.body, "updated") == [
        f"{timestamp(created)}Z", f"{timestamp(changed)}Z"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "start", "needle"),
    [
        ("GET", "/q", "Manage,EntityRead claims required for this operation", ""),
        ("GET", "/$Resources/queues", "Manage,EntityRead claims required for this operation", ""),
        ("GET", "/$Resources/topics", "Manage,EntityRead claims required for this operation", ""),
        ("PUT", "/new", "", "Authorization failed for specified action: Manage,EntityWrite"),
        ("PUT", "/q", "", "Authorization failed for specified action: Manage,EntityWrite"),
        ("DELETE", "/q", "", "Authorization failed for specified action: Manage,EntityDelete."),
        ("DELETE", "/missing", "", "Authorization failed for specified action: Manage,EntityDelete."),
        ("GET", "/t/subscriptions/s", "",
         "401 SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription'"),
        ("GET", "/t/subscriptions/missing", "",
         "401 SubCode=40100: Unauthorized : Unauthorized access for 'GetSubscription'"),
        ("GET", "/t/subscriptions", "",
         "401 SubCode=40100: Unauthorized : Unauthorized access for 'EnumerateSubscriptions' operation"),
        ("PUT", "/t/subscriptions/s", "",
         "401 SubCode=40100: Unauthorized : Unauthorized access for 'CreateOrUpdateSubscription'"),
        ("DELETE", "/t/subscriptions/s", "",
         "401 SubCode=40100: Unauthorized : Unauthorized access for 'DeleteSubscription'"),
        ("GET", "/missing/subscriptions/s", "", "'GetSubscription'"),
        ("GET", "/$namespaceinfo", "Manage,EntityRead claims required", ""),
    ],
)  # fmt: skip
def test_a_rule_without_manage_is_told_which_claim_is_missing(
    clean: Http, method: str, path: str, start: str, needle: str
) -> None:
    clean.call("PUT", "/q", described(QUEUE))
    clean.call("PUT", "/t", described(TOPIC))
    clean.set_rule(None, "reader", Rights.SEND | Rights.LISTEN)
    auth = token(rule="reader", key="its own key")
    refused = clean.call(method, path, described(QUEUE) if method == "PUT" else "", auth=auth)
    assert refused.status == 401
    assert detail(refused.body).startswith(start) and needle in detail(refused.body)


def test_only_a_read_of_a_missing_queue_comes_before_the_right(http: Http) -> None:
    http.set_rule(None, "reader", Rights.SEND | Rights.LISTEN)
    auth = token(rule="reader", key="its own key")
    missing = http.call("GET", "/missing", auth=auth)
    assert missing.status == 404 and "could not be found" in detail(missing.body)
    assert http.call("GET", "/missing", auth=token(rule="reader", key="wrong")).status == 401
    assert http.call("GET", "/missing", auth=None).status == 401
    assert http.call("GET", "/missing", auth=token("other", rule="reader", key="its own key")).status == 401


def test_a_token_for_the_address_of_a_request_of_management_is_enough_for_it_and_below(clean: Http) -> None:
    """JavaScript's administration client signs each request's address, in lower case and with its query."""
    clean.call("PUT", "/t", described(TOPIC))
    clean.call("PUT", "/t/Subscriptions/s", described(SUBSCRIPTION))
    addresses = ["$namespaceinfo", "$Resources/topics", "t", "t/Subscriptions", "t/Subscriptions/s/Rules"]
    for signed in addresses:
        auth = token(f"{signed}/?api-version=2021-05&$top=7".lower())
        for asked in addresses:
            expected = 200 if f"{asked}/".startswith(f"{signed}/") else 401
            assert clean.call("GET", f"/{asked}", auth=auth).status == expected, (signed, asked)
    assert clean.call("POST", "/t/messages", "x", auth=token("t/messages?timeout=60")).status == 401


def test_a_rule_of_a_queue_manages_it_as_soon_as_it_is_written(clean: Http) -> None:
    def with_rule(rights: str) -> str:
        written = "".join(f"<AccessRights>{right}</AccessRights>" for right in rights.split())
        return described(
            QUEUE,
            '<AuthorizationRules><AuthorizationRule i:type="SharedAccessAuthorizationRule"><Rights>'
            f"{written}</Rights><KeyName>own</KeyName><PrimaryKey>its own key</PrimaryKey></AuthorizationRule>"
            "</AuthorizationRules>",
        )

    assert clean.call("PUT", "/q", with_rule("Send Listen Manage")).status == 201
    auth = token("q", rule="own", key="its own key")
    assert clean.call("GET", "/q", auth=auth).status == 200
    assert clean.call("PUT", "/q", with_rule("Listen"), **ANY).status == 200
    assert clean.call("GET", "/q", auth=auth).status == 401


@pytest.mark.parametrize(
    ("headers", "code"),
    [(lambda: None, 40102), (lambda: "SharedAccessSignature rubbish", 40105), (lambda: token(key="wrong"), 40103),
     (lambda: token("other"), 40104), (lambda: token(seconds=-60), 40106)],
    ids=["missing", "malformed", "signature", "audience", "expired"],
)  # fmt: skip
def test_a_token_that_is_not_taken_has_its_own_number(http: Http, headers: Callable[[], str | None], code: int) -> None:
    """The token is made when the test runs: it is good for ten minutes, and a whole run may take longer."""
    refused = http.call("GET", "/q", auth=headers())
    assert refused.status == 401 and detail(refused.body).startswith(f"SubCode={code}. ")
