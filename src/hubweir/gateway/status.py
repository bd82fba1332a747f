"""The status of a service, as one namespace may see it: processes, stores, its entities with their logs, and alarms.

Every broker is asked, whichever process has it, and the supervisor where there is one. Who does not answer in time is
told as silent: a status never waits for the sick. Nothing of it is kept; after a crash it is asked anew.

Other namespaces of the service have rules of their own, so their names are not told: alarms about them are counted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from hubweir import __version__
from hubweir.alarms import KINDS
from hubweir.broker.commands.broker_process import AskProcesses, ProcessesTold
from hubweir.broker.commands.command import Answer, Command
from hubweir.broker.commands.process import Refusal
from hubweir.broker.commands.status import AlarmTold, AskStatus, LogTold, StatusTold, alarms_told
from hubweir.gateway.brokers import BrokerClient
from hubweir.gateway.gateway import Gateway
from hubweir.namespace.entity import EntityDescription

ANSWER_S = 3.0
SERVES, AWAY, SILENT, NOT_OPEN = "serves", "away", "silent", "not-open"
HEALTHY, DEGRADED, UNHEALTHY = "healthy", "degraded", "unhealthy"

# How alarms name what they are about: "store store-3", "partition 3 of orders in namespace ns (log 5f0c…)".
_STORE = re.compile(r"store \D*(\d+)")
_LOG = re.compile(r"\(log ([0-9a-f]{32})\)")
_NAMESPACE = re.compile(r"\bnamespace (\S+)")
_BLOCKS = {kind.name for kind in KINDS if kind.blocks}

Document = dict[str, Any]


async def status_of(gateway: Gateway) -> Document:
    """The document of docs/http.md. Takes ANSWER_S at most."""
    supervisor = gateway.process.supervisor
    brokers = list(gateway.brokers)
    asked = [ask_in_time(broker, AskStatus()) for broker in brokers]
    if supervisor is not None:
        asked.append(ask_in_time(supervisor, AskProcesses()))
    answers = await asyncio.gather(*asked)
    processes = answers[len(brokers)] if supervisor is not None else None
    told = list(alarms_told(gateway.process.alarms))
    for answer in answers:
        if isinstance(answer, StatusTold | ProcessesTold):
            told += answer.alarms
    alarms, hidden = _seen_by(gateway.namespace.description.name, told)
    stores = [_store(index, answer, alarms) for index, answer in enumerate(answers[: len(brokers)])]
    entities = _entities(gateway, answers[: len(brokers)], alarms)
    parts = [*stores, *(log for entity in entities for log in entity["logs"])]
    is_blocked = any(alarm.kind in _BLOCKS for alarm in told) or any(each["state"] != SERVES for each in parts)
    return {
        "status": UNHEALTHY if is_blocked else DEGRADED if told else HEALTHY,
        "version": __version__,
        "now_ms": gateway.env.now_ms(),
        "namespace": _namespace(gateway, processes),
        "processes": _processes(processes),
        "stores": stores,
        "entities": entities,
        "alarms": [_alarm(alarm, gateway.env.now_ms()) for alarm in alarms],
        "alarms_of_others": hidden,
    }


async def ask_in_time(broker: BrokerClient, command: Command, *, within_s: float = ANSWER_S) -> Answer | None:
    """Its answer; None when there is none in time."""
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    broker.submit(command, partial(_set, answered))
    try:
        return await asyncio.wait_for(answered, within_s)
    except TimeoutError:
        return None


def _set(answered: asyncio.Future[Answer], answer: Answer) -> None:
    if not answered.done():
        answered.set_result(answer)


def _seen_by(namespace: str, told: Iterable[AlarmTold]) -> tuple[list[AlarmTold], int]:
    """The alarms that a namespace may see, each once, the oldest first; and how many are hidden from it.

    Brokers of one process tell the same alarms, and two processes may have the same trouble with a third.
    """
    every = {(alarm.kind, alarm.about): alarm for alarm in sorted(told, key=lambda alarm: -alarm.since_ms)}
    seen = [alarm for alarm in every.values() if _namespace_of(alarm) in (None, namespace)]
    return sorted(seen, key=lambda alarm: alarm.since_ms), len(every) - len(seen)


def _namespace_of(alarm: AlarmTold) -> str | None:
    found = _NAMESPACE.search(alarm.about)
    return None if found is None else found[1]


def _namespace(gateway: Gateway, processes: Answer | None) -> Document:
    description, connections = gateway.namespace.description, gateway.connection_count
    if isinstance(processes, ProcessesTold) and gateway.process.processes > 1:
        # As each process said last; a lease of units may be older, or there is none.
        connections = sum(each.of_namespaces.get(description.name, 0) for each in processes.processes)
    return {
        "name": description.name,
        "profile": gateway.settings.profile.name,
        "connections": connections,
        "throughput_units": description.units.held,
        "is_current": gateway.keeper.is_current,
    }


def _processes(answer: Answer | None) -> list[Document]:
    """Of one process that has one store there is nothing to tell here."""
    if not isinstance(answer, ProcessesTold):
        return []
    return [
        {
            "broker": each.index, "state": each.state, "pid": each.pid, "stores": list(each.stores),
            "connections": each.connections, "starts": each.starts,
        }
        for each in answer.processes
    ]  # fmt: skip


def _store(index: int, answer: Answer | None, alarms: Iterable[AlarmTold]) -> Document:
    own = [alarm.kind for alarm in alarms if (found := _STORE.fullmatch(alarm.about)) and int(found[1]) == index]
    if isinstance(answer, StatusTold):
        return {"store": index, "state": SERVES, "why": "", "open_logs": len(answer.logs), "alarms": own}
    why = answer.text if isinstance(answer, Refusal) else f"its broker did not answer within {ANSWER_S:.0f} s"
    state = AWAY if isinstance(answer, Refusal) else SILENT
    return {"store": index, "state": state, "why": why, "open_logs": 0, "alarms": own}


def _entities(gateway: Gateway, answers: list[Answer | None], alarms: Iterable[AlarmTold]) -> list[Document]:
    logs = {log.log_id: log for answer in answers if isinstance(answer, StatusTold) for log in answer.logs}
    troubles: dict[str, list[AlarmTold]] = {}
    for alarm in alarms:
        if found := _LOG.search(alarm.about):
            troubles.setdefault(found[1], []).append(alarm)
    away = {index for index, answer in enumerate(answers) if not isinstance(answer, StatusTold)}
    return [
        {
            "kind": entity.kind.value,
            "name": entity.name,
            "status": entity.description.availability.text,
            "logs": [
                _log(
                    logs.get(place.log_id),
                    troubles.get(place.log_id, []),
                    number=number,
                    store=place.store_index,
                    is_away=place.store_index in away,
                )
                for number, place in enumerate(entity.placements)
            ],
        }
        for entity in gateway.namespace.entities(EntityDescription)
    ]


def _log(log: LogTold | None, troubles: list[AlarmTold], *, number: int, store: int, is_away: bool) -> Document:
    """One partition or fragment. state: what keeps it from serving; the kind of its alarm where it has one."""
    blocking = [alarm for alarm in troubles if alarm.kind in _BLOCKS]
    state = AWAY if is_away else blocking[0].kind if blocking else NOT_OPEN if log is None else SERVES
    document: Document = {"number": number, "store": store, "state": state, "alarms": [each.kind for each in troubles]}
    if log is not None:
        document |= {"first": log.first_index, "next": log.next_index}
        if log.behind_events >= 0:
            document["capture"] = {"behind_events": log.behind_events, "failure": log.capture_failure}
    return document


def _alarm(alarm: AlarmTold, now_ms: int) -> Document:
    return {
        "kind": alarm.kind,
        "blocks": alarm.kind in _BLOCKS,
        "about": alarm.about,
        "text": alarm.text,
        "since_ms": alarm.since_ms,
        "seconds": max(0, now_ms - alarm.since_ms) // 1_000,
    }
