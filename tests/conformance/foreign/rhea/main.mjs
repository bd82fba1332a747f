// An AMQP 1.0 library that knows nothing of event hubs: the same namespace, seen as nodes, links and annotations.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  BATCH_FORMAT,
  EARLIEST,
  HUBWEIR_CA_FILE,
  HUBWEIR_HOST,
  HUBWEIR_HUB,
  HUBWEIR_KEY,
  HUBWEIR_KEY_VECTORS,
  HUBWEIR_RULE,
  MEBIBYTE,
  PLAIN,
  annotation,
  ask,
  attached,
  batchOf,
  bodyOf,
  connected,
  event,
  eventOf,
  lastNumber,
  partitionOf,
  properties,
  read,
  receiver,
  refused,
  send,
  sender,
} from "./amqp.mjs";
import { check, restartServer } from "./checks.mjs";

// ---- connecting ----

await check("connects_plain_and_reads_hub_properties", () =>
  connected(async (connection) => {
    const hub = await properties(connection, "eventhub", HUBWEIR_HUB);
    assert.equal(hub.name, HUBWEIR_HUB);
    assert.deepEqual([...hub.partition_ids], ["0", "1", "2", "3"]);
    assert.equal(hub.partition_count, 4);
  }));
await check("connects_over_tls", () =>
  connected(async (connection) => assert.equal((await properties(connection, "eventhub", HUBWEIR_HUB)).partition_count, 4), {
    ...PLAIN,
    transport: "tls",
    ca: readFileSync(HUBWEIR_CA_FILE),
  }));
await check("plain_authorises_without_a_token", () =>
  connected(async (connection) => send(await sender(connection, HUBWEIR_HUB), eventOf("no token"))));
await check("plain_with_a_wrong_key_is_refused", () =>
  assert.rejects(connected(async () => {}, { ...PLAIN, password: "wrong" }), /Failed to authenticate|disconnected|refused/i));
const ANONYMOUS = { username: "anonymous" };

function token(key) {
  const resource = encodeURIComponent(`sb://${HUBWEIR_HOST}/${HUBWEIR_HUB}`);
  const expiry = Math.floor(Date.now() / 1000) + 3600;
  const signature = createHmac("sha256", key).update(`${resource}\n${expiry}`).digest("base64");
  return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${HUBWEIR_RULE}`;
}

const putToken = (connection, key) =>
  ask(connection, "$cbs", {
    application_properties: {
      operation: "put-token",
      type: "servicebus.windows.net:sastoken",
      name: `amqp://${HUBWEIR_HOST}/${HUBWEIR_HUB}`,
    },
    body: token(key),
  });
await check("put_token_answers_202", () =>
  connected(async (connection) => {
    await refused(sender(connection, HUBWEIR_HUB), "amqp:unauthorized-access");
    const answer = await putToken(connection, HUBWEIR_KEY);
    assert.equal(answer.application_properties["status-code"], 202);
    await send(await sender(connection, HUBWEIR_HUB), eventOf("with a token"));
  }, ANONYMOUS));
await check("wrong_key_is_unauthorised", () =>
  connected(async (connection) => {
    const { application_properties: said } = await putToken(connection, "wrong");
    assert.equal(said["status-code"], 401);
    assert.match(said["status-description"], /^InvalidSignature:/);
  }, ANONYMOUS));
await check("many_sessions_on_one_connection", () =>
  connected(async (connection) => {
    const begun = (session) => event(session, "session_open");
    for (let round = 0; round < 30; round++) {
      const sessions = Array.from({ length: 10 }, () => connection.create_session());
      const opened = sessions.map(begun);
      sessions.forEach((session) => session.begin());
      await Promise.all(opened);
      const ended = sessions.map((session) => event(session, "session_close"));
      sessions.forEach((session) => session.close());
      await Promise.all(ended);
    }
    assert.equal((await properties(connection, "eventhub", HUBWEIR_HUB)).partition_count, 4);
  }));

// ---- sending ----

await check("empty_partition_has_its_properties", () =>
  connected(async (connection) => {
    const empty = await partitionOf(connection, "3", "keys-8");
    assert.equal(empty.is_partition_empty, true);
    assert.equal(empty.last_enqueued_offset, "-1");
    assert.equal(Number(empty.last_enqueued_sequence_number), -1);
    assert.equal(Number(empty.last_enqueued_time_utc), -62135596800000);
  }));
await check("partition_properties_count_what_was_sent", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "1");
    await send(await sender(connection, `${HUBWEIR_HUB}/Partitions/1`), batchOf(["1", "2", "3"]), BATCH_FORMAT);
    assert.equal(await lastNumber(connection, "1"), before + 3);
  }));
await check("single_event_keeps_body_and_properties", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "1");
    const link = await sender(connection, `/${HUBWEIR_HUB}/Partitions/1`);
    await send(link, {
      header: { durable: true },
      message_annotations: { mine: "kept", "x-opt-sequence-number": 7 },
            message_id: "message 1",
      application_properties: { text: "ünïcode", number: 42, flag: true },
      body: { a: "map", of: ["values"] },
      footer: { f: "oot" },
    });
    const [got] = await read(connection, "1", `x-opt-sequence-number > '${before}'`, 1);
    assert.deepEqual(got.body, { a: "map", of: ["values"] });
    assert.deepEqual({ ...got.application_properties }, { text: "ünïcode", number: 42, flag: true });
    assert.equal(got.message_id, "message 1");
    assert.equal(got.message_annotations.mine, "kept");
    assert.equal(got.footer.f, "oot");
    assert.equal(Number(annotation(got, "sequence-number")), before + 1);
    assert.match(annotation(got, "offset"), /^\d+$/);
    assert.ok(Math.abs(Date.now() - annotation(got, "enqueued-time")) < 60_000);
  }));
await check("batch_stays_together_and_in_order", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "1");
    const sent = Array.from({ length: 250 }, (_, index) => `event ${index}`);
    await send(await sender(connection, `${HUBWEIR_HUB}/Partitions/1`), batchOf(sent), BATCH_FORMAT);
    const got = await read(connection, "1", `x-opt-sequence-number > '${before}'`, sent.length);
    assert.deepEqual(got.map(bodyOf), sent);
  }));
await check("batch_limit_is_a_mebibyte", () =>
  connected(async (connection) => {
    const link = await sender(connection, `${HUBWEIR_HUB}/Partitions/2`);
    assert.equal(Number(link.remote.attach.max_message_size), MEBIBYTE);
    await send(link, eventOf(Buffer.alloc(MEBIBYTE - 1024)));
  }));
await check("oversize_is_refused", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "2");
    const link = await sender(connection, `${HUBWEIR_HUB}/Partitions/2`);
    await refused(send(link, eventOf(Buffer.alloc(MEBIBYTE))), "amqp:link:message-size-exceeded");
    assert.equal(await lastNumber(connection, "2"), before);
  }));
await check("link_is_usable_after_oversize", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "2");
    const link = await sender(connection, `${HUBWEIR_HUB}/Partitions/2`);
    await send(link, eventOf(Buffer.alloc(MEBIBYTE))).catch(() => {});
    await send(link, eventOf("small again"));
    const got = await read(connection, "2", `x-opt-sequence-number > '${before}'`, 1);
    assert.deepEqual(got.map(bodyOf), ["small again"]);
  }));
await check("presettled_event_is_stored", () =>
  connected(async (connection) => {
    const before = await lastNumber(connection, "2");
    const link = await attached(connection.open_sender({ target: { address: `${HUBWEIR_HUB}/Partitions/2` }, snd_settle_mode: 1 }));
    if (!link.sendable()) await event(link, "sendable");
    link.send(eventOf("settled"));
    const got = await read(connection, "2", `x-opt-sequence-number > '${before}'`, 1);
    assert.deepEqual(got.map(bodyOf), ["settled"]);
  }));

// ---- partition keys ----

const vectors = Object.entries(JSON.parse(readFileSync(HUBWEIR_KEY_VECTORS, "utf8")));
for (const count of [2, 4, 8, 32]) {
  await check(`keys_agree_on_${count}_partitions`, () =>
    connected(async (connection) => {
      const hub = `keys-${count}`;
      const link = await sender(connection, hub);
      for (const [key] of vectors) await send(link, eventOf(key, key));
      const chosen = new Map();
      for (let id = 0; id < count; id++) {
        const waiting = (await lastNumber(connection, String(id), hub)) + 1;
        if (!waiting) continue;
        for (const message of await read(connection, id, EARLIEST, waiting, { hub })) {
          chosen.set(annotation(message, "partition-key"), id);
        }
      }
      assert.deepEqual(vectors.filter(([key, expected]) => chosen.get(key) !== expected[count]), []);
    }));
}

// ---- receiving ----

const tenBodies = Array.from({ length: 10 }, (_, index) => `ten ${index}`);
let ten = [];
await check("receives_from_earliest", () =>
  connected(async (connection) => {
    const link = await sender(connection, `${HUBWEIR_HUB}/Partitions/0`);
    const before = await lastNumber(connection, "0");
    for (const body of tenBodies) {
      await send(link, eventOf(body));
      await new Promise((resolve) => setTimeout(resolve, 3)); // the next event gets a later enqueued time
    }
    ten = (await read(connection, "0", EARLIEST, before + 11)).slice(-10);
    assert.deepEqual(ten.map(bodyOf), tenBodies);
  }));
for (const [name, expression, first] of [
  ["receives_after_offset", () => `x-opt-offset > '${annotation(ten[4], "offset")}'`, 5],
  ["receives_at_offset", () => `x-opt-offset >= '${annotation(ten[4], "offset")}'`, 4],
  ["receives_after_sequence_number", () => `x-opt-sequence-number > ${annotation(ten[4], "sequence-number")}`, 5],
  ["receives_at_sequence_number", () => `x-opt-sequence-number >= '${annotation(ten[4], "sequence-number")}'`, 4],
  ["receives_after_time", () => `x-opt-enqueued-time > '${Number(annotation(ten[4], "enqueued-time"))}'`, 5],
]) {
  await check(name, () =>
    connected(async (connection) => {
      const got = await read(connection, "0", expression(), 10 - first);
      assert.deepEqual(got.map(bodyOf), tenBodies.slice(first));
    }));
}
await check("receives_from_latest", () =>
  connected(async (connection) => {
    const link = await attached(receiver(connection, "0", "x-opt-offset > '@latest'", 5));
    const arrived = event(link, "message");
    await send(await sender(connection, `${HUBWEIR_HUB}/Partitions/0`), eventOf("late"));
    const [, { message }] = await arrived;
    assert.equal(bodyOf(message), "late");
  }));
await check("drain_ends_the_credit", () =>
  connected(async (connection) => {
    const link = await attached(receiver(connection, "0", "x-opt-offset > '@latest'", 10));
    const drained = event(link, "receiver_drained");
    link.drain_credit();
    await drained;
    assert.equal(link.credit, 0);
  }));

// ---- errors ----

const ENTITY = /The messaging entity .* could not be found/;
const PARTITION = /The specified partition is invalid for an EventHub partition sender or receiver/;
const errors = {
  missing_hub_is_not_found_by_sender: [(c) => sender(c, "no-such-hub"), "amqp:not-found", ENTITY],
  missing_hub_is_not_found_by_receiver: [
    (c) => attached(receiver(c, "0", EARLIEST, 1, { hub: "no-such-hub" })), "amqp:not-found", ENTITY,
  ],
  missing_hub_is_not_found_by_properties: [(c) => properties(c, "eventhub", "no-such-hub"), "amqp:not-found", ENTITY],
  missing_consumer_group_is_not_found: [
    (c) => attached(receiver(c, "0", EARLIEST, 1, { group: "nobody" })), "amqp:not-found", ENTITY,
  ],
  unknown_partition_is_refused_to_sender: [
    (c) => sender(c, `${HUBWEIR_HUB}/Partitions/1000`), "com.microsoft:argument-out-of-range", PARTITION,
  ],
  unknown_partition_is_refused_to_receiver: [
    (c) => attached(receiver(c, "XYZ", EARLIEST, 1)), "com.microsoft:argument-out-of-range", PARTITION,
  ],
  unknown_partition_has_no_properties: [
    (c) => partitionOf(c, "-"), "com.microsoft:argument-out-of-range", PARTITION,
  ],
};
for (const [name, [operation, condition, text]] of Object.entries(errors)) {
  await check(name, () =>
    connected(async (connection) => {
      await refused(operation(connection), condition, text);
      // The connection stays usable.
      assert.equal((await properties(connection, "eventhub", HUBWEIR_HUB)).partition_count, 4);
    }));
}

// ---- coming back ----

const sendTo2 = (bodies) =>
  connected(async (connection) => {
    await send(await sender(connection, `${HUBWEIR_HUB}/Partitions/2`), batchOf(bodies), BATCH_FORMAT);
  });
await check("resumes_by_sequence_number", async () => {
  let last = await connected((connection) => lastNumber(connection, "2"));
  const got = [];
  for (const bodies of [["a", "b", "c"], ["d", "e"]]) {
    await sendTo2(bodies);
    const some = await connected((connection) => read(connection, "2", `x-opt-sequence-number > '${last}'`, bodies.length));
    got.push(...some.map(bodyOf));
    last = annotation(some.at(-1), "sequence-number");
  }
  assert.deepEqual(got, ["a", "b", "c", "d", "e"]);
});
await check("reader_and_sender_survive_a_server_restart", async () => {
  const last = await connected((connection) => lastNumber(connection, "2"));
  await sendTo2(["before"]);
  await connected(async (connection) => {
    await Promise.all([event(connection, "connection_error"), restartServer()]);
    assert.equal(connection.error.condition, "amqp:connection:forced");
  });
  await sendTo2(["after"]);
  const got = await connected((connection) => read(connection, "2", `x-opt-sequence-number > '${last}'`, 2));
  assert.deepEqual(got.map(bodyOf), ["before", "after"]);
});

process.exit(0);
