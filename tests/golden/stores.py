"""Golden stores: small disks that an earlier build wrote, and what stood on them. Made anew by

    ./run python -m tests.golden.stores

when a format changes before the first release; afterwards a new file is added beside those of earlier versions, and
none is ever made anew (promise P19). A file holds disks by name: each has its files, as bytes, and its contents as the
build that wrote them read them back.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Any

from hubweir.broker.capture.tests.capture_world import CaptureWorld
from hubweir.broker.tests.numbered_world import NumberedWorld
from hubweir.capture.capture_mark import MARK_KEY, unpack_mark
from hubweir.messaging_store.disk.layout import LOGS_FOLDER
from hubweir.messaging_store.log import Durability
from hubweir.messaging_store.record import headers_of, producer_of
from hubweir.messaging_store.segment_engine.messaging_store import MessagingStore
from hubweir.namespace.delivery_settings import DeliverySettings
from hubweir.namespace.entity import EntityDescription
from hubweir.namespace.event_hub_changes import add_group
from hubweir.namespace.iso_duration import written_duration
from hubweir.namespace.messaging_description import MessagingDescription
from hubweir.namespace.queue_description import QueueDescription
from hubweir.namespace.rights import Rights
from hubweir.namespace.rule_description import AuthorizationRuleDescription
from hubweir.namespace.secret import Secret
from hubweir.namespace.storage_settings import StorageSettings
from hubweir.namespace.subscription_description import SubscriptionDescription
from hubweir.namespace.subscription_rule import (
    CorrelationFilterDescription,
    NamedValue,
    SqlFilterDescription,
    SubscriptionRuleDescription,
    ValueType,
)
from hubweir.namespace.tests.conftest import Process
from hubweir.namespace.topic_description import TopicDescription
from hubweir.testing.answers import made_log, opened_log, runs_of, snapshot_of
from hubweir.testing.memory_files import MemoryFiles
from hubweir.testing.simulated_env import SimulatedEnv
from tests.simulation.log_world import LogWorld, events_run

GOLDEN = Path(__file__).with_name("stores.json.xz")
RESERVE = "RESERVE"  # megabytes of nothing


def make() -> dict[str, MemoryFiles]:
    """Disks with everything that a store can hold: name -> disk, as a kill left it."""
    return {"logs": _logs(), "captured": _captured(), "numbered": _numbered(), "catalog": _catalog()}


def _logs() -> MemoryFiles:
    """Two logs: one durable with chains, notes, several segments and a snapshot; one relaxed that skipped numbers."""
    world = LogWorld(1)
    world.switches_modes = world.has_notes = world.has_bad_clocks = False
    world.durability = Durability.DURABLE
    world.open()
    assert world.log is not None
    for number in range(8):
        world.append()
        world.append_note()
        world.env.run_for(150)
        if number == 4:
            world.log.save_snapshot(b"the state", lambda outcome: None)
            world.env.run_for(300)
    _relaxed(world.files)
    return world.files.copy()


def _relaxed(files: MemoryFiles) -> None:
    """Killed in the first process, so that the second one skips numbers."""
    env = SimulatedEnv(2, files=files)
    for life in range(2):
        log = made_log(env, MessagingStore.open(env, "store-1"), "ab" * 16, durability=Durability.RELAXED)
        for number in range(4):
            run = events_run([[b"%d.%d" % (life, number) * 20]])
            log.append(run, now_ms=env.now_ms(), on_done=lambda outcome: None)
            env.run_for(30)
        env.crash()
        env = env.restart()


def _captured() -> MemoryFiles:
    with CaptureWorld(5) as world:
        world.open()
        world.send(60, size=30)
        world.run_s(70)
        world.send(7)
        world.run_s(1)
        return world.files.copy()


def _numbered() -> MemoryFiles:
    world = NumberedWorld(4, producers=2, sinks=1)
    for _ in range(12):
        for each in [*world.senders, *world.sinks]:
            each.act(world.random)
        world.env.run_for(100)
    world.env.run_for(12_000)
    return world.env.files.copy()


def _catalog() -> MemoryFiles:
    process = Process(SimulatedEnv(7))
    process.ask(lambda done: process.writer.describe(lambda known: replace(known, name="hubweir"), done))
    for name in ("orders", "telemetry", "gone", "going"):
        process.create(name)
    process.delete("gone")
    process.begin_delete("going")
    process.change("orders", add_group, name="readers")
    process.make(
        QueueDescription("tasks", DeliverySettings(lock_duration=written_duration("PT45S"), requires_session=True))
    )
    process.make(TopicDescription("news", StorageSettings(is_partitioned=True), user_metadata="mine"))
    sql = SqlFilterDescription("color = @c", (NamedValue("@c", ValueType.STRING, "blue"),))
    process.make(
        SubscriptionDescription("news/Subscriptions/all", first_rule=SubscriptionRuleDescription("first", sql))
    )
    process.put_rule(
        "news/Subscriptions/all", SubscriptionRuleDescription("second", CorrelationFilterDescription(label="x"))
    )
    process.remove_rule("news/Subscriptions/all", "first")
    rule = AuthorizationRuleDescription("sender", Rights.SEND, Secret("one"), Secret("two"))
    for level in (None, "orders"):
        process.ask(lambda done, level=level: process.writer.change_rules(level, lambda known: known.set(rule), done))
    return process.env.files.copy()


def contents(files: MemoryFiles) -> dict[str, Any]:
    """All that a disk shows when its stores are opened, as JSON has it."""
    env = SimulatedEnv(0, files=files)
    found: dict[str, Any] = {}
    for folder in files.list(""):
        if not files.exists(f"{folder}/{LOGS_FOLDER}"):
            continue
        store = MessagingStore.open(env, folder)
        for log_id in store.log_ids():
            found[f"{folder}/{log_id}"] = _log_contents(env, store, log_id)
        found[f"{folder} alarms"] = [alarm.text for alarm in store.alarms.current()]
    found["captured files"] = {path: _digest(files.bytes_of(path)) for path in files.paths() if path.endswith(".avro")}
    if files.exists("catalog"):
        namespace = _namespace(files)
        found["namespace"] = [namespace.description.name, len(namespace.description.rules)]
        found["entities"] = [
            [entity.kind.value, entity.name, entity.status.name, len(entity.placements), len(entity.description.rules)]
            for entity in (*namespace.entities(EntityDescription), *namespace.unfinished())
        ]
        found["settings"] = [
            _digest(repr(entity.description).encode()) for entity in namespace.entities(MessagingDescription)
        ]
        found["subscription rules"] = {
            entity.name: [str(rule) for rule in namespace.subscription_rules(entity.name)]
            for entity in namespace.entities(SubscriptionDescription)
        }
    return json.loads(json.dumps(found))


def _log_contents(env: SimulatedEnv, store: MessagingStore, log_id: str) -> dict[str, Any]:
    log = opened_log(env, store, log_id)
    bounds, batches = log.bounds, []
    for run in runs_of(env, log, bounds.first_index):
        for header in headers_of(run.data):
            if header.count:
                payload = run.data[header.records_at : header.end]
                batches.append(
                    [header.first_index, header.count, header.first_offset, header.enqueued_time_ms, header.flags,
                     str(producer_of(run.data, header)), _digest(payload)]
                )  # fmt: skip
    snapshot = snapshot_of(env, log)
    mark = log.notes.get(MARK_KEY)
    return {
        "bounds": str(bounds),
        "durability": log.durability.name,
        "batches": batches,
        "notes": {key.hex(): str(note) for key, note in sorted(log.notes.items())},
        "snapshot": snapshot and [snapshot.index, _digest(snapshot.state)],
        "mark": mark and str(unpack_mark(mark.body)),
    }


def _namespace(files: MemoryFiles) -> Any:
    files.process_died()
    return Process(SimulatedEnv(1, files=files)).namespace


def _digest(data: Any) -> str:
    return hashlib.sha256(bytes(data)).hexdigest()[:16]


def save(disks: dict[str, MemoryFiles]) -> None:
    """Write the golden file: the bytes of each disk, and what it shows now."""
    golden = {}
    for name, files in disks.items():
        held = {path: bytes(files.bytes_of(path)) for path in files.paths() if not path.endswith(RESERVE)}
        encoded = {path: base64.b64encode(data).decode() for path, data in held.items()}
        golden[name] = {"files": encoded, "contents": contents(files.copy())}
    GOLDEN.write_bytes(lzma.compress(json.dumps(golden, indent=1, sort_keys=True).encode()))


def load() -> dict[str, tuple[MemoryFiles, dict[str, Any]]]:
    """The golden disks: name -> a fresh disk with their bytes, and what they showed."""
    found = {}
    for name, disk in json.loads(lzma.decompress(GOLDEN.read_bytes())).items():
        files = MemoryFiles(name)
        for path, data in disk["files"].items():
            files.set_bytes(path, base64.b64decode(data))
        found[name] = files, disk["contents"]
    return found


if __name__ == "__main__":
    save(make())
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes")
