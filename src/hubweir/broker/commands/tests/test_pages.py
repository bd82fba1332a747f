"""The pages of the folder: what a command that makes or opens a log says of it, and numbers that never change."""

from __future__ import annotations

import pytest

from hubweir.broker import wire  # which imports every page
from hubweir.broker.commands.command import DECLARED, CreateLog
from hubweir.broker.commands.fragment import CreateFragment, OpenFragment
from hubweir.broker.commands.partition import CreatePartition, OpenPartition
from hubweir.broker.commands.process import Done
from hubweir.broker.commands.topic import CreateTopic, OpenTopic, TopicSubscription
from hubweir.messaging_store.log import Durability
from hubweir.queue.fragment_settings import FragmentSettings

RELAXED = FragmentSettings(is_express=True)
TEA, COFFEE = (TopicSubscription(name, f"news/Subscriptions/{name}", RELAXED, True, b"") for name in ("tea", "coffee"))
PAIRS = [(CreatePartition, OpenPartition), (CreateFragment, OpenFragment), (CreateTopic, OpenTopic)]

# What a process of before says to one of now. A number is never another class's; a new class has a new one.
NUMBERS = {
    **{"CreatePartition": 1, "DeletePartition": 2, "ChangePartition": 3, "AppendEvents": 4, "OpenReader": 5},
    **{"CloseReader": 6, "CloseOwner": 7, "ReadEvents": 8, "CancelRead": 9, "AskPartitionInfo": 10},
    **{"AskCounters": 11, "ConfirmReaderClosed": 12, "OpenProducer": 13, "CloseProducer": 14, "AppendNumbered": 15},
    **{"CapPartitions": 16, "AskCaptureState": 20, "OpenPartition": 21, "CreateFragment": 30, "OpenFragment": 31},
    **{"DeleteFragment": 32, "ChangeFragment": 33, "EnqueueMessages": 34, "OpenReceiver": 35, "CloseReceiver": 36},
    **{"ReceiveMessages": 37, "CancelReceive": 38, "SettleMessages": 39, "RenewLocks": 40, "PeekMessages": 41},
    **{"ReceiveDeferred": 42, "CancelScheduled": 43, "DeleteMessages": 44, "AskFragmentInfo": 45, "RenewSession": 46},
    **{"GetSessionState": 47, "SetSessionState": 48, "ListSessions": 49, "CreateTopic": 50, "OpenTopic": 51},
    **{"PutSubscription": 52, "RemoveSubscription": 53, "PutSubscriptionRules": 54, "RemoveSubscriptionRule": 55},
    **{"GiveUpSession": 56, "ReserveNumbers": 27},
    **{"Done": 64, "EventsAppended": 65, "ReaderOpened": 66, "EventsRead": 67, "PartitionInfo": 68},
    **{"CountersTaken": 69, "Refusal": 70, "ProducerOpened": 71, "AlreadyAppended": 72, "CaptureState": 80},
    **{"MessagesEnqueued": 90, "ReceiverOpened": 91, "MessagesReceived": 92, "MessagesSettled": 93},
    **{"LocksRenewed": 94, "MessagesDeleted": 95, "FragmentInfo": 96, "SessionRenewed": 97, "SessionStateRead": 98},
    **{"SessionsListed": 99, "ReaderClosed": 128, "SessionLost": 140, "TransferOpen": 141, "MessagesGiven": 142},
    **{"PrepareTransaction": 22, "EndTransaction": 23, "AskTransaction": 24, "BeginDecision": 25},
    **{"ForgetTransaction": 26, "CommitTransaction": 63, "TransactionFate": 126, "TransactionOpen": 190},
    **{"ListOpenTransfers": 59, "TakeTransfer": 60, "StoreTransfer": 61, "EndTransfer": 62},
    **{"FollowCatalog": 192, "CatalogApplied": 193, "CreateEntity": 194, "UpdateEntity": 195, "DeleteEntity": 196},
    **{"UpdateAuthorizationRules": 197, "PutCatalogRule": 198, "RemoveCatalogRule": 199, "UpdateUnits": 200},
    **{"UpdateTags": 212},
    **{"AskUsage": 201, "TellUses": 202, "LeaseUnits": 203, "CatalogFollowed": 224, "EntityAsKept": 225},
    **{"FollowNamespaces": 204, "NamespacesApplied": 205, "CreateNamespace": 206, "DeleteNamespace": 207},
    **{"RaiseEpoch": 160, "RestoreNamespace": 223, "AskRestore": 161, "RestoreTold": 241},
    **{"NamespacesTold": 229, "NamespacesChanged": 153, "ChangeSettings": 219},
    **{"RuleAsKept": 226, "UsageTold": 227, "UnitsLent": 228},
    **{"AskProcess": 17, "TakeClients": 18, "LetClientsGo": 19, "ProcessState": 73},
    **{"AskMeasures": 58, "MeasuresTaken": 75},
    **{"TrySignIn": 208, "SignInTried": 236, "SignInSucceeded": 209, "AskSession": 210, "SessionTold": 237},
    **{"EndSession": 211},
    **{"ForwardClock": 213, "OrderFaultRates": 214, "AskControl": 216, "ControlTold": 238},
    **{"AskOrders": 217, "OrdersTold": 240, "KeepOrders": 218, "OrdersKept": 239},
    **{"PurgePartition": 215, "PartitionPurged": 235},
    **{"AskStatus": 220, "StatusTold": 76, "AskReaders": 221, "ReadersTold": 77},
    **{"AskConnections": 222, "ConnectionsTold": 78},
    **{"AskProcesses": 28, "OrderFault": 29, "MarkStore": 57, "ProcessesTold": 74},
    **{"CatalogPart": 150, "CatalogChanged": 151, "UsesWanted": 152},
    **{"TransferTaken": 110, "TransferStored": 111, "OpenTransfersListed": 112},
}


def test_no_class_has_another_number_than_it_had() -> None:
    assert all(map(wire.form_of, NUMBERS.values()))
    now = {made.__name__: number for number, made in DECLARED.items()}
    assert now == NUMBERS, "a new class stands in NUMBERS, too"


def test_what_makes_logs_is_a_pair_one_that_makes_and_one_that_only_opens() -> None:
    assert {made for made in DECLARED.values() if issubclass(made, CreateLog)} == {
        each for pair in PAIRS for each in pair
    }
    for create, open_it in PAIRS:
        assert issubclass(open_it, create) and (create.makes, open_it.makes) == (True, False)
        assert create.answers == open_it.answers == (Done,)
        assert create.__struct_fields__ == open_it.__struct_fields__


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_people_read_what_lies_in_a_log_and_in_which_namespace(namespace: str) -> None:
    where = " in namespace shop" if namespace else ""
    partition = CreatePartition("p", "orders", "3", Durability.DURABLE, 1, namespace)
    assert partition.name == f"partition 3 of orders{where}"
    assert CreateFragment("f", "orders", RELAXED, namespace, 2).name == f"fragment 2 of orders{where}"
    assert CreateTopic("t", "news", RELAXED, namespace, (), 3).name == f"fragment 3 of topic news{where}"


def test_a_log_is_as_durable_as_its_entity_says() -> None:
    for durability in Durability:
        settings = FragmentSettings(is_express=durability is Durability.RELAXED)
        assert CreatePartition("p", "orders", "3", durability, 1).log_durability is durability
        assert CreateFragment("f", "orders", settings).log_durability is durability
        assert CreateTopic("t", "news", settings).log_durability is durability


def test_only_on_a_topic_s_log_others_live_that_are_named_by_ids_of_their_own() -> None:
    assert CreateTopic("t", "news", RELAXED, "", (TEA, COFFEE)).inside == ["tea", "coffee"]
    assert CreateTopic("t", "news", RELAXED).inside == []
    assert list(CreatePartition("p", "orders", "3", Durability.DURABLE, 1).inside) == []
    assert list(CreateFragment("f", "orders", RELAXED).inside) == []
