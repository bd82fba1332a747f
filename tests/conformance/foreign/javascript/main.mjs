// Everything that an application does with @azure/event-hubs, against the namespace that the environment names.
// One file above the usual length: a list of checks in the order of the table, each a few lines, is read as one.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import {
  EventHubConsumerClient,
  EventHubProducerClient,
  earliestEventPosition,
  latestEventPosition,
} from "@azure/event-hubs";
import WebSocket from "ws";
import { check, refused, restartServer, within } from "./checks.mjs";
import {
  GROUP,
  HUBWEIR_HUB,
  HUBWEIR_KEY_VECTORS,
  HUBWEIR_PLAIN,
  HUBWEIR_TLS,
  HUBWEIR_TOKEN,
  HUBWEIR_WRONG_KEY,
  MEBIBYTE,
  OPTIONS,
  bodies,
  consumer,
  lastNumber,
  otherConsumer,
  otherProducer,
  pause,
  producer,
  read,
  retryOptions,
  tail,
  withClient,
} from "./hub.mjs";

// ---- connecting ----

await check("connects_plain_and_reads_hub_properties", async () => {
  const hub = await producer.getEventHubProperties();
  assert.equal(hub.name, HUBWEIR_HUB);
  assert.deepEqual(hub.partitionIds, ["0", "1", "2", "3"]);
  assert.ok(Math.abs(Date.now() - hub.createdOn) < 600_000, `created ${hub.createdOn}`);
});
await check("connects_over_tls", () =>
  otherProducer(HUBWEIR_TLS, HUBWEIR_HUB, async (client) => assert.equal((await client.getPartitionIds()).length, 4)));
await check("connects_over_websocket", () =>
  otherProducer(
    HUBWEIR_TLS,
    HUBWEIR_HUB,
    async (client) => {
      assert.equal((await client.getPartitionIds()).length, 4);
      await client.sendBatch([{ body: "over WebSocket" }], { partitionId: "1" });
    },
    { webSocketOptions: { webSocket: WebSocket } },
  ));
await check("shared_access_signature_instead_of_a_key", () =>
  otherProducer(HUBWEIR_TOKEN, HUBWEIR_HUB, async (client) => {
    assert.equal((await client.getEventHubProperties()).name, HUBWEIR_HUB);
    await client.sendBatch([{ body: "with a signature" }], { partitionId: "1" });
  }));
// The client retries this one, and then reports all attempts in an error without a code.
await check("wrong_key_is_unauthorised", () =>
  otherProducer(
    HUBWEIR_WRONG_KEY,
    HUBWEIR_HUB,
    (client) => refused(client.sendBatch([{ body: "x" }]), { code: "UnauthorizedError", text: /^InvalidSignature:/ }),
    { retryOptions: { ...retryOptions, maxRetries: 0 } },
  ));

// ---- sending ----

await check("empty_partition_has_its_properties", async () => {
  const properties = await producer.getPartitionProperties("3");
  assert.equal(properties.isEmpty, true);
  assert.equal(properties.lastEnqueuedSequenceNumber, -1);
  assert.equal(properties.lastEnqueuedOffset, "-1");
});
await check("partition_properties_count_what_was_sent", async () => {
  const before = await lastNumber("1");
  await producer.sendBatch([{ body: 1 }, { body: 2 }, { body: 3 }], { partitionId: "1" });
  const after = await producer.getPartitionProperties("1");
  assert.equal(after.lastEnqueuedSequenceNumber, before + 3);
  assert.equal(after.isEmpty, false);
  assert.ok(Math.abs(Date.now() - after.lastEnqueuedOnUtc) < 60_000);
});
await check("single_event_keeps_body_and_properties", async () => {
  const from = await tail("1");
  const sent = {
    body: Buffer.from([0, 1, 254, 255]),
    properties: { text: "ünïcode", number: 42, flag: true, when: new Date(1_700_000_000_000) },
    messageId: "message 1",
    correlationId: "correlation 1",
    contentType: "application/octet-stream",
  };
  await producer.sendBatch([sent], { partitionId: "1" });
  const [event] = await read("1", from, 1);
  assert.deepEqual(Buffer.from(event.body), sent.body);
  assert.equal(event.properties.text, "ünïcode");
  assert.equal(event.properties.number, 42);
  assert.equal(event.properties.flag, true);
  assert.equal(Number(event.properties.when), 1_700_000_000_000);
  assert.equal(event.messageId, "message 1");
  assert.equal(event.correlationId, "correlation 1");
  assert.equal(event.contentType, "application/octet-stream");
  assert.match(event.offset, /^\d+$/);
  assert.ok(Math.abs(Date.now() - event.enqueuedTimeUtc) < 60_000);
});
await check("batch_stays_together_and_in_order", async () => {
  const from = await tail("1");
  const batch = await producer.createBatch({ partitionId: "1" });
  const sent = Array.from({ length: 250 }, (_, index) => `event ${index}`);
  for (const body of sent) assert.ok(batch.tryAdd({ body }));
  await producer.sendBatch(batch);
  const events = await read("1", from, sent.length);
  assert.deepEqual(bodies(events), sent);
  events.forEach((event, index) => assert.equal(event.sequenceNumber, from.sequenceNumber + 1 + index));
});
await check("sends_to_the_partition_it_names", async () => {
  const before = await Promise.all(["1", "2"].map(lastNumber));
  await producer.sendBatch([{ body: "here" }], { partitionId: "2" });
  assert.deepEqual(await Promise.all(["1", "2"].map(lastNumber)), [before[0], before[1] + 1]);
});
await check("batch_limit_is_a_mebibyte", async () => {
  const batch = await producer.createBatch();
  assert.equal(batch.maxSizeInBytes, MEBIBYTE);
  assert.equal(batch.tryAdd({ body: Buffer.alloc(MEBIBYTE) }), false);
  assert.equal(batch.tryAdd({ body: Buffer.alloc(MEBIBYTE - 1024) }), true);
});
await check("quarter_mebibyte_event_arrives", async () => {
  const from = await tail("2");
  const sent = Buffer.alloc(250 * 1024, "q");
  await producer.sendBatch([{ body: sent }], { partitionId: "2" });
  const [event] = await read("2", from, 1);
  assert.ok(sent.equals(event.body));
});
// The client does not look at the size: all of it goes over the wire.
await check("oversize_is_refused", async () => {
  const before = await lastNumber("2");
  await refused(producer.sendBatch([{ body: Buffer.alloc(1_300_000) }], { partitionId: "2" }), {
    code: "MessageTooLargeError",
    text: /The received message \(delivery-id:\d+, size:\d+ bytes\) exceeds the limit \(\d+ bytes\) currently allowed on the link\./,
  });
  assert.equal(await lastNumber("2"), before);
});
await check("link_is_usable_after_oversize", async () => {
  const from = await tail("2");
  await producer.sendBatch([{ body: "small again" }], { partitionId: "2" });
  assert.deepEqual(bodies(await read("2", from, 1)), ["small again"]);
});
await check("without_key_every_partition_is_used", () =>
  otherProducer(HUBWEIR_PLAIN, "keys-4", async (client) => {
    for (let index = 0; index < 16; index++) await client.sendBatch([{ body: `spread ${index}` }]);
    for (const id of await client.getPartitionIds()) assert.equal((await client.getPartitionProperties(id)).isEmpty, false);
  }));

// ---- partition keys ----

const vectors = Object.entries(JSON.parse(readFileSync(HUBWEIR_KEY_VECTORS, "utf8")));

/** Events of every partition of a hub from its beginning, as [partition, event]. */
async function everything(hub, client) {
  const found = [];
  for (const id of await client.getPartitionIds()) {
    const { isEmpty, lastEnqueuedSequenceNumber: last } = await client.getPartitionProperties(id);
    if (isEmpty) continue;
    const events = await read(id, earliestEventPosition, last + 1, { client });
    found.push(...events.map((event) => [Number(id), event]));
  }
  return found;
}

await check("single_and_batch_of_a_key_share_a_partition", () =>
  otherProducer(HUBWEIR_PLAIN, "keys-8", async (client) => {
    await client.sendBatch([{ body: "single" }], { partitionKey: "shared" });
    const batch = await client.createBatch({ partitionKey: "shared" });
    for (const body of ["first", "second"]) batch.tryAdd({ body });
    await client.sendBatch(batch);
    const found = await otherConsumer("keys-8", (reader) => everything("keys-8", reader));
    const mine = found.filter(([, event]) => event.partitionKey === "shared");
    assert.deepEqual(bodies(mine.map(([, event]) => event)), ["single", "first", "second"]);
    assert.equal(new Set(mine.map(([id]) => id)).size, 1);
  }));
for (const count of [2, 4, 8, 32]) {
  await check(`keys_agree_on_${count}_partitions`, () =>
    otherProducer(HUBWEIR_PLAIN, `keys-${count}`, async (client) => {
      for (const [key] of vectors) await client.sendBatch([{ body: key }], { partitionKey: key });
      const found = await otherConsumer(`keys-${count}`, (reader) => everything(`keys-${count}`, reader));
      const chosen = new Map(found.map(([id, event]) => [event.partitionKey, id]));
      const wrong = vectors.filter(([key, expected]) => chosen.get(key) !== expected[count]).map(([key]) => key);
      assert.deepEqual(wrong, []);
    }));
}

// ---- receiving: ten events with times of their own, and where reading can begin ----

let ten = [];
const tenBodies = Array.from({ length: 10 }, (_, index) => `ten ${index}`);
for (const body of tenBodies) {
  await producer.sendBatch([{ body }], { partitionId: "0" }).catch(() => {}); // the checks below will tell
  await pause(3);
}
await check("receives_from_earliest", async () => {
  ten = await read("0", earliestEventPosition, 10);
  assert.deepEqual(bodies(ten), tenBodies);
  assert.deepEqual(
    ten.map((event) => event.sequenceNumber),
    Array.from({ length: 10 }, (_, index) => index),
  );
});
for (const [name, position, first] of [
  ["receives_after_offset", () => ({ offset: ten[4].offset }), 5],
  ["receives_at_offset", () => ({ offset: ten[4].offset, isInclusive: true }), 4],
  ["receives_after_sequence_number", () => ({ sequenceNumber: 4 }), 5],
  ["receives_at_sequence_number", () => ({ sequenceNumber: 4, isInclusive: true }), 4],
  ["receives_after_time", () => ({ enqueuedOn: ten[4].enqueuedTimeUtc }), 5],
]) {
  await check(name, async () =>
    assert.deepEqual(bodies(await read("0", position(), 10 - first)), tenBodies.slice(first)));
}
await check("receives_from_latest", async () => {
  // When the link stands is not told to the application: it sends until something arrives.
  let sending = true;
  let sent = 0;
  const [first] = await Promise.all([
    read("0", latestEventPosition, 1).finally(() => (sending = false)),
    (async () => {
      while (sending) {
        await producer.sendBatch([{ body: `late ${sent++}` }], { partitionId: "0" });
        await pause(50);
      }
    })(),
  ]);
  assert.match(first[0].body, /^late \d+$/);
  assert.ok(first[0].sequenceNumber >= 10);
});
await check("receives_beyond_the_first_credit", async () => {
  const from = await tail("0");
  const sent = Array.from({ length: 1000 }, (_, index) => index);
  await producer.sendBatch(
    sent.map((body) => ({ body })),
    { partitionId: "0" },
  );
  assert.deepEqual(bodies(await read("0", from, 1000)), sent);
});

// ---- errors ----

const NOT_FOUND = { code: "MessagingEntityNotFoundError" };
await check("missing_hub_is_not_found_by_sender", () =>
  otherProducer(HUBWEIR_PLAIN, "no-such-hub", (client) => refused(client.sendBatch([{ body: "x" }]), NOT_FOUND)));
await check("missing_hub_is_not_found_by_receiver", () =>
  otherConsumer("no-such-hub", (client) => refused(read("0", earliestEventPosition, 1, { client }), NOT_FOUND)));
await check("missing_hub_is_not_found_by_properties", () =>
  otherProducer(HUBWEIR_PLAIN, "no-such-hub", (client) => refused(client.getEventHubProperties(), NOT_FOUND)));
await check("missing_consumer_group_is_not_found", () =>
  otherConsumer(HUBWEIR_HUB, (client) => refused(read("0", earliestEventPosition, 1, { client }), NOT_FOUND), "nobody"));
const OUT_OF_RANGE = {
  code: "ArgumentOutOfRangeError",
  text: /The specified partition is invalid for an EventHub partition sender or receiver/,
};
await check("unknown_partition_is_refused_to_sender", () =>
  refused(producer.sendBatch([{ body: "x" }], { partitionId: "1000" }), OUT_OF_RANGE));
await check("unknown_partition_is_refused_to_receiver", () =>
  refused(read("1000", earliestEventPosition, 1), OUT_OF_RANGE));
await check("unknown_partition_has_no_properties", () =>
  refused(producer.getPartitionProperties("XYZ"), OUT_OF_RANGE));

// ---- owner levels, the tracked last event, idempotent producers ----

// A client reads a partition once only, so each owner is a client of its own.
const owning = (ownerLevel) =>
  otherConsumer(HUBWEIR_HUB, (client) => read("3", latestEventPosition, 1, { client, ownerLevel }));
await check("higher_owner_level_takes_over", async () => {
  const loser = owning(1);
  loser.catch(() => {});
  await pause(500);
  owning(2).catch(() => {});
  await refused(loser, { code: "ReceiverDisconnectedError" });
});
await check("lower_owner_level_is_refused", async () => {
  owning(5).catch(() => {});
  await pause(500);
  await refused(owning(4), { code: "ReceiverDisconnectedError" });
});
await check("last_enqueued_event_is_tracked", async () => {
  const last = await lastNumber("1");
  let tracked;
  const subscription = consumer.subscribe(
    "1",
    {
      processEvents: async (events, context) => {
        if (events.length) tracked = context.lastEnqueuedEventProperties;
      },
      processError: async () => {},
    },
    { startPosition: { sequenceNumber: last, isInclusive: true }, trackLastEnqueuedEventProperties: true },
  );
  try {
    for (let waited = 0; waited < 5000 && !tracked; waited += 50) await pause(50);
    assert.equal(tracked?.sequenceNumber, last);
  } finally {
    await subscription.close();
  }
});
await check("idempotent_producer_sends_once", async () => {
  const before = await lastNumber("3");
  // The buffered producer of this library sets the same two members.
  const idempotent = (state) => {
    const client = new EventHubProducerClient(HUBWEIR_PLAIN, HUBWEIR_HUB, OPTIONS);
    client._enableIdempotentRetries = true;
    client._partitionOptions = state && { 3: state };
    return client;
  };
  const send = (client) => client.sendBatch([{ body: "once" }, { body: "twice" }], { partitionId: "3" });
  const { ownerLevel, producerGroupId } = await withClient(idempotent(), async (client) => {
    await send(client);
    return client.getPartitionPublishingProperties("3");
  });
  assert.ok(Number.isInteger(producerGroupId), `the service gave the producer the id ${producerGroupId}`);
  // Another life of the same producer sends the same two again: they are there already.
  await withClient(idempotent({ ownerLevel, producerGroupId, startingSequenceNumber: 0 }), send);
  assert.equal(await lastNumber("3"), before + 2);
});

// ---- coming back ----

await check("resumes_by_sequence_number", async () => {
  const from = await tail("2");
  const send = (names) => producer.sendBatch(names.map((body) => ({ body })), { partitionId: "2" });
  await send(["a", "b", "c"]);
  const first = await otherConsumer(HUBWEIR_HUB, (client) => read("2", from, 3, { client }));
  await send(["d", "e"]);
  const next = { sequenceNumber: first.at(-1).sequenceNumber };
  const second = await otherConsumer(HUBWEIR_HUB, (client) => read("2", next, 2, { client }));
  assert.deepEqual(bodies([...first, ...second]), ["a", "b", "c", "d", "e"]);
});
// Attempts that end before the server is back are final for a reader of this client: it tells an error, and begins anew
// at its first position.
const PATIENT = { retryOptions: { ...retryOptions, maxRetries: 30 } };
await check("reader_and_sender_survive_a_server_restart", async () => {
  const from = await tail("2");
  const sender = new EventHubProducerClient(HUBWEIR_PLAIN, HUBWEIR_HUB, PATIENT);
  const reader = new EventHubConsumerClient(GROUP, HUBWEIR_PLAIN, HUBWEIR_HUB, PATIENT);
  const seen = [];
  const errors = [];
  const until = async (body) => {
    while (!seen.includes(body)) await pause(20);
  };
  reader.subscribe(
    "2",
    {
      processEvents: async (events) => void seen.push(...bodies(events)),
      processError: async (error) => errors.push(`${error.code}: ${error.message}`),
    },
    { startPosition: from, maxWaitTimeInSeconds: 1 },
  );
  try {
    await sender.sendBatch([{ body: "before" }], { partitionId: "2" });
    await until("before");
    await restartServer();
    await sender.sendBatch([{ body: "after" }], { partitionId: "2" });
    await until("after");
  } finally {
    await Promise.all([reader.close(), sender.close()]);
  }
  const told = errors.length > 0 ? [...new Set(seen)] : seen;
  assert.deepEqual(told, ["before", "after"], `seen ${seen}; told ${errors}`);
});

await Promise.all([producer.close(), consumer.close()]);
process.exit(0);
