// An AMQP 1.0 library that knows nothing of Service Bus: queues and topics seen as nodes, links, outcomes and annotations.
// One file above the usual length: a list of checks in the order of the table, each a few lines, is read as one.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import rhea from "rhea";
import WebSocket from "ws";
import {
  BATCH_FORMAT,
  HUBWEIR_CA_FILE,
  HUBWEIR_HOST,
  HUBWEIR_KEY,
  HUBWEIR_PORT,
  HUBWEIR_RULE,
  PLAIN,
  WAIT_MS,
  ask,
  attached,
  connected,
  event,
  refused,
  send as sendOne,
  sender,
} from "./amqp.mjs";
import { beside, check, restartServer, within } from "./checks.mjs";
import {
  DELETING,
  abandon,
  accept,
  annotation,
  bodies,
  complete,
  deadLetter,
  defer,
  isQuiet,
  lockedUntil,
  longs,
  manage,
  numberOf,
  pause,
  peek,
  receiver,
  send,
  sessionOf,
  settled,
  take,
  takeOne,
  types,
  uuids,
} from "./queues.mjs";

// ---- connecting ----

const roundTrip = (queue) => async (connection) => {
  await send(connection, queue, { body: "hello" });
  const got = await takeOne(await receiver(connection, queue));
  assert.equal(got.message.body, "hello");
  assert.equal(await complete(got), "accepted");
};
await check("plain_authorises_without_a_token", () => connected(roundTrip("plain")));
await check("plain_with_a_wrong_key_is_refused", () =>
  assert.rejects(connected(async () => {}, { ...PLAIN, password: "wrong" }), /Failed to authenticate|disconnected|refused/i));
await check("connects_over_tls", () =>
  connected(roundTrip("tls"), { ...PLAIN, transport: "tls", ca: readFileSync(HUBWEIR_CA_FILE) }));
await check("connects_over_websocket", () => {
  const address = `wss://${HUBWEIR_HOST}:${HUBWEIR_PORT}/$servicebus/websocket`;
  const connect = rhea.websocket_connect(WebSocket);
  return connected(roundTrip("websocket"), { ...PLAIN, connection_details: connect(address, ["AMQPWSB10"]) });
});

function token(key) {
  const resource = encodeURIComponent(`sb://${HUBWEIR_HOST}/plain`);
  const expiry = Math.floor(Date.now() / 1000) + 3600;
  const signature = createHmac("sha256", key).update(`${resource}\n${expiry}`).digest("base64");
  return `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signature)}&se=${expiry}&skn=${HUBWEIR_RULE}`;
}

const putToken = (connection, key) =>
  ask(connection, "$cbs", {
    application_properties: {
      operation: "put-token",
      type: "servicebus.windows.net:sastoken",
      name: `amqp://${HUBWEIR_HOST}/plain`,
    },
    body: token(key),
  });
const ANONYMOUS = { username: "anonymous" };
await check("put_token_answers_202", () =>
  connected(async (connection) => {
    await refused(sender(connection, "plain"), "amqp:unauthorized-access");
    const { application_properties: said } = await putToken(connection, HUBWEIR_KEY);
    assert.deepEqual([said["status-code"], typeof said["status-description"]], [202, "string"]);
    await roundTrip("plain")(connection);
  }, ANONYMOUS));
await check("wrong_key_is_unauthorised", () =>
  connected(async (connection) => {
    const { application_properties: said } = await putToken(connection, "wrong");
    assert.equal(said["status-code"], 401);
  }, ANONYMOUS));
await check("end_of_a_session_leaves_the_others", () =>
  connected(async (connection) => {
    const sessions = [connection.create_session(), connection.create_session()];
    const receivers = [];
    for (const session of sessions) {
      const opened = event(session, "session_open");
      session.begin();
      await opened;
      receivers.push(await receiver(session, "two-sessions", 0));
    }
    const ended = event(sessions[0], "session_close");
    sessions[0].close();
    await ended;
    await send(connection, "two-sessions", { body: "x" });
    receivers[1].add_credit(1);
    assert.equal((await takeOne(receivers[1])).message.body, "x");
  }));

// ---- sending ----

await check("single_message_keeps_body_and_properties", () =>
  connected(async (connection) => {
    const application_properties = {
      int: types.wrap_int(-5), uint: types.wrap_uint(7), long: types.wrap_long(2 ** 40), real: 0.5, text: "é", yes: true,
      byte: types.wrap_byte(-1), when: types.wrap_timestamp(1_577_934_245_000),
    };
    await send(connection, "single", {
      header: { durable: true },
      priority: 7,
      message_annotations: { mine: "kept", "x-opt-sequence-number": 7 },
      message_id: "id",
      to: "to",
      subject: "subject",
      reply_to: "reply to",
      correlation_id: "correlation",
      content_type: "text/x",
      group_id: "key",
      reply_to_group_id: "reply session",
      application_properties,
      body: { an: ["object", 1] },
      footer: { f: "oot" },
    });
    const came = await takeOne(await receiver(connection, "single"));
    const { message, delivery } = came;
    const { int, uint, long, real, text, yes, byte, when } = message.application_properties;
    assert.deepEqual([int, uint, long, real, text, yes, byte, Number(when)], [-5, 7, 2 ** 40, 0.5, "é", true, -1, 1_577_934_245_000]);
    assert.deepEqual(message.body, { an: ["object", 1] });
    assert.deepEqual([message.message_id, message.to, message.subject, message.reply_to], ["id", "to", "subject", "reply to"]);
    assert.deepEqual([message.correlation_id, message.content_type], ["correlation", "text/x"]);
    assert.deepEqual([message.group_id, message.reply_to_group_id, message.priority], ["key", "reply session", 7]);
    assert.deepEqual([message.message_annotations.mine, message.footer.f], ["kept", "oot"]);
    assert.equal(numberOf(came), 1);
    assert.ok(Math.abs(Date.now() - annotation(came, "enqueued-time")) < 60_000);
    const left = annotation(came, "locked-until") - Date.now();
    assert.ok(left > 50_000 && left < 61_000, `the lock ends in ${left} ms`);
    assert.equal(delivery.tag.length, 16);
    assert.deepEqual(message.delivery_annotations["x-opt-lock-token"], guidOf(delivery.tag));
    assert.equal(message.delivery_count ?? 0, 0);
    await complete(came);
  }));

/** The bytes of a uuid whose Guid has these: its first three fields are turned round. */
function guidOf(tag) {
  const order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
  return Buffer.from(order.map((place) => tag[place]));
}

await check("batch_is_its_messages_in_order", () =>
  connected(async (connection) => {
    const first = { message_id: "1", subject: "first", application_properties: { n: 1 }, body: "a" };
    const parts = [first, { body: "b" }, { body: "c" }].map((each) => rhea.message.encode(each));
    // An envelope that repeats the properties of its first message gives them to no other.
    const { body, ...sections } = first;
    const link = await sender(connection, "batch");
    await sendOne(link, { ...sections, body: rhea.message.data_sections(parts) }, BATCH_FORMAT);
    const got = await take(await receiver(connection, "batch", 5, DELETING), 3);
    assert.deepEqual(bodies(got), ["a", "b", "c"]);
    assert.deepEqual(got.map(numberOf), [1, 2, 3]);
    assert.deepEqual(got.map(({ message }) => message.subject ?? null), ["first", null, null]);
    assert.deepEqual(await peek(connection, "batch"), []);
  }));
await check("oversize_is_refused", () =>
  connected(async (connection) => {
    for (const size of [262_144, 1_000_000]) {
      const link = await sender(connection, "small");
      assert.equal(Number(link.max_message_size), 262_144);
      const message = { body: rhea.message.data_section(Buffer.alloc(size)) };
      await refused(sendOne(link, message), "amqp:link:message-size-exceeded");
    }
    assert.deepEqual(await peek(connection, "small"), []);
  }));
await check("presettled_message_is_stored", () =>
  connected(async (connection) => {
    const link = await attached(connection.open_sender({ target: { address: "presettled" }, snd_settle_mode: 1 }));
    if (!link.sendable()) await event(link, "sendable");
    link.send({ body: "settled" });
    assert.equal((await takeOne(await receiver(connection, "presettled"))).message.body, "settled");
  }));
await check("message_of_many_frames_is_stored_once_and_comes_in_many", async () => {
  const large = Buffer.from(Array.from({ length: 200_000 }, (_, at) => (at * 31) % 251));
  const message = { body: rhea.message.data_section(large) };
  const small = { ...PLAIN, max_frame_size: 1_024 };
  await connected((connection) => send(connection, "frames", message, { body: "behind" }), small);
  await connected(async (connection) => {
    const got = await take(await receiver(connection, "frames", 5), 2);
    assert.ok(large.equals(got[0].message.body.content), "the body came back otherwise");
    assert.equal(got[1].message.body, "behind");
    assert.equal(await complete(got[0]), "accepted");
    assert.deepEqual(bodies(await peek(connection, "frames")), ["behind"]);
  }, small);
});
await check("duplicate_is_stored_once", () =>
  connected(async (connection) => {
    const sent = [["first", "id"], ["second", "id"], ["other", "other"]].map(([body, message_id]) => ({ body, message_id }));
    await send(connection, "duplicates", ...sent);
    const link = await receiver(connection, "duplicates", 5, DELETING);
    assert.deepEqual(bodies(await take(link, 2)), ["first", "other"]);
    await isQuiet(link);
  }));

// ---- receiving ----

await check("default_receiver_accepts_what_it_is_given", () =>
  connected(async (connection) => {
    await send(connection, "defaults", { body: "a" }, { body: "b" });
    const got = [];
    const link = connection.open_receiver("defaults"); // a window of credit, first settle mode, accepted by itself
    link.on("message", ({ message }) => got.push(message.body));
    while (got.length < 2) await event(link, "message");
    assert.deepEqual(got, ["a", "b"]);
    for (let tries = 0; (await peek(connection, "defaults")).length; tries++) assert.ok(tries < 50, "they are there still");
  }));
await check("received_and_deleted_messages_are_gone", () =>
  connected(async (connection) => {
    await send(connection, "deleting", { body: "a" }, { body: "b" });
    const got = await take(await receiver(connection, "deleting", 5, DELETING), 2);
    assert.deepEqual(bodies(got), ["a", "b"]);
    assert.ok(got.every(({ delivery }) => delivery.remote_settled), "it came unsettled");
    assert.deepEqual(got.map((each) => annotation(each, "locked-until")), [undefined, undefined]);
    assert.deepEqual(await peek(connection, "deleting"), []);
  }));
await check("drain_gives_what_there_is_and_ends_the_credit", () =>
  connected(async (connection) => {
    await send(connection, "draining", { body: "a" }, { body: "b" });
    const link = await receiver(connection, "draining", 0);
    const drained = event(link, "receiver_drained");
    link.add_credit(5);
    link.drain_credit();
    await drained;
    assert.deepEqual(bodies(link.came), ["a", "b"]);
    assert.deepEqual([link.credit, link.delivery_count], [0, 5]);
    const again = event(link, "receiver_drained");
    link.drain_credit(); // without any credit
    await again;
    assert.deepEqual([link.credit, link.delivery_count], [0, 5]);
  }));
await check("credit_is_never_exceeded", () =>
  connected(async (connection) => {
    await send(connection, "crediting", ...["a", "b", "c", "d"].map((body) => ({ body })));
    const link = await receiver(connection, "crediting", 2);
    assert.deepEqual(bodies(await take(link, 2)), ["a", "b"]);
    await isQuiet(link);
    link.add_credit(1);
    assert.deepEqual(bodies(await take(link, 1)), ["c"]);
    await isQuiet(link);
  }));

// ---- settling ----

await check("completed_message_is_gone", () =>
  connected(async (connection) => {
    await send(connection, "completing", { body: "x" });
    const link = await receiver(connection, "completing", 2);
    assert.equal(await complete(await takeOne(link)), "accepted");
    await isQuiet(link);
    assert.deepEqual(await peek(connection, "completing"), []);
  }));
await check("range_of_deliveries_is_settled_by_one_disposition", () =>
  connected(async (connection) => {
    await send(connection, "range", ...["a", "b", "c"].map((body) => ({ body })));
    const link = await receiver(connection, "range", 3);
    const got = await take(link, 3);
    const written = [];
    link.session.output = (frame, payload) => {
      written.push(frame);
      Object.getPrototypeOf(link.session).output.call(link.session, frame, payload);
    };
    assert.deepEqual(await Promise.all(got.map(complete)), ["accepted", "accepted", "accepted"]);
    const ranges = written.filter(({ first, last }) => last - first === 2);
    assert.deepEqual([written.length, ranges.length], [1, 1]);
    assert.deepEqual(await peek(connection, "range"), []);
  }));
await check("abandoned_message_comes_again_with_its_new_properties", () =>
  connected(async (connection) => {
    await send(connection, "abandoning", { body: "x", application_properties: { kept: 1, changed: "before" } }, { body: "behind it" });
    const link = await receiver(connection, "abandoning", 1);
    const first = await takeOne(link);
    assert.equal(await abandon(first, { changed: "after", added: true }), "modified");
    link.add_credit(2);
    const [again, behind] = await take(link, 2);
    assert.deepEqual([again.message.body, numberOf(again), again.message.delivery_count], ["x", 1, 1]); // at its old place
    assert.equal(behind.message.body, "behind it");
    assert.deepEqual({ ...again.message.application_properties }, { kept: 1, changed: "after", added: true });
    assert.notDeepEqual(again.delivery.tag, first.delivery.tag);
    await complete(again);
  }));
await check("released_message_comes_at_once_uncounted", () =>
  connected(async (connection) => {
    await send(connection, "releasing", { body: "a" }, { body: "b" });
    const link = await receiver(connection, "releasing", 1);
    assert.equal(await settled(await takeOne(link), (delivery) => delivery.release()), "released");
    link.add_credit(2);
    const got = await take(link, 2);
    assert.deepEqual(bodies(got), ["a", "b"]);
    assert.deepEqual(got.map(({ message }) => message.delivery_count ?? 0), [0, 0]);
  }));
await check("deferred_message_is_received_by_number", () =>
  connected(async (connection) => {
    await send(connection, "deferring", { body: "x" });
    const link = await receiver(connection, "deferring", 2);
    const came = await takeOne(link);
    assert.equal(await defer(came), "modified");
    await isQuiet(link);
    const asked = { "sequence-numbers": longs([numberOf(came)]), "receiver-settle-mode": types.wrap_uint(1) };
    const { messages } = await manage(connection, "deferring", "receive-by-sequence-number", asked);
    const message = rhea.message.decode(messages[0].message);
    assert.deepEqual([messages.length, message.body, annotation({ message }, "message-state")], [1, "x", 1]);
    const status = { "disposition-status": "completed", "lock-tokens": uuids([messages[0]["lock-token"]]) };
    await manage(connection, "deferring", "update-disposition", status);
    await refused(manage(connection, "deferring", "receive-by-sequence-number", asked), "com.microsoft:message-not-found");
  }));
await check("dead_lettered_message_says_why", () =>
  connected(async (connection) => {
    await send(connection, "dead", { body: "reason" }, { body: "none" });
    const [reason, none] = await take(await receiver(connection, "dead", 2), 2);
    const why = { DeadLetterReason: "broken", DeadLetterErrorDescription: "no wheels", own: 1 };
    assert.equal(await deadLetter(reason, why), "rejected");
    assert.equal(await settled(none, (delivery) => delivery.reject()), "rejected");
    assert.deepEqual(await peek(connection, "dead"), []);
    const got = await take(await receiver(connection, "dead/$DeadLetterQueue", 2), 2);
    assert.deepEqual(bodies(got), ["reason", "none"]);
    assert.deepEqual({ ...got[0].message.application_properties }, why);
    assert.equal(got[1].message.application_properties?.DeadLetterReason, undefined);
  }));
await check("expired_message_is_dead_lettered", () =>
  connected(async (connection) => {
    await send(connection, "expiring", { body: "x", ttl: 1_000 });
    const { message } = await takeOne(await receiver(connection, "expiring/$deadletterqueue", 1));
    assert.deepEqual([message.body, message.application_properties.DeadLetterReason], ["x", "TTLExpiredException"]);
    assert.deepEqual(await peek(connection, "expiring"), []);
  }));
await check("settling_twice_is_lock_lost", () =>
  connected(async (connection) => {
    await send(connection, "twice", { body: "x" });
    const came = await takeOne(await receiver(connection, "twice", 1));
    const done = { "disposition-status": "completed", "lock-tokens": uuids([guidOf(came.delivery.tag)]) };
    await manage(connection, "twice", "update-disposition", done);
    assert.equal(await complete(came), "com.microsoft:message-lock-lost");
  }));
await check("settles_through_another_client", async () => {
  const tag = await connected(async (connection) => {
    await send(connection, "other-client", { body: "x" });
    return (await takeOne(await receiver(connection, "other-client", 1))).delivery.tag;
  });
  await connected(async (connection) => {
    const tokens = { "lock-tokens": uuids([guidOf(tag)]) };
    await manage(connection, "other-client", "renew-lock", tokens);
    await manage(connection, "other-client", "update-disposition", { "disposition-status": "completed", ...tokens });
    assert.deepEqual(await peek(connection, "other-client"), []);
  });
});

// ---- locks ----

await check("lock_is_renewed", () =>
  connected(async (connection) => {
    await send(connection, "locks", { body: "renewed" });
    const came = await takeOne(await receiver(connection, "locks", 1));
    await pause(3_000);
    const { expirations } = await manage(connection, "locks", "renew-lock", { "lock-tokens": uuids([guidOf(came.delivery.tag)]) });
    assert.ok(expirations[0] > annotation(came, "locked-until"), "the lock does not end later");
    await pause(3_000);
    assert.equal(await complete(came), "accepted");
    assert.deepEqual(await peek(connection, "locks"), []);
  }));
await check("lock_that_ended_is_lost", () =>
  connected(async (connection) => {
    await send(connection, "locks", { body: "lost" });
    const link = await receiver(connection, "locks", 1);
    const came = await takeOne(link);
    await pause(5_500);
    assert.equal(await complete(came), "com.microsoft:message-lock-lost");
    const tokens = { "lock-tokens": uuids([guidOf(came.delivery.tag)]) };
    await refused(manage(connection, "locks", "renew-lock", tokens), "com.microsoft:message-lock-lost");
    link.add_credit(1);
    const again = await takeOne(link);
    assert.deepEqual([again.message.body, again.message.delivery_count], ["lost", 1]);
    await complete(again);
  }));

// ---- peek and schedule ----

await check("peek_of_an_empty_queue_is_quick", () =>
  connected(async (connection) => {
    const begin = Date.now();
    assert.deepEqual(await peek(connection, "peeking"), []);
    assert.ok(Date.now() - begin < 1_000, `it took ${Date.now() - begin} ms`);
  }));
const scheduledFor = (body, dueMs) => ({
  body,
  message_annotations: { "x-opt-scheduled-enqueue-time": types.wrap_timestamp(dueMs) },
});
await check("peek_shows_every_state", () =>
  connected(async (connection) => {
    await send(connection, "peeking", { body: "deferred" }, { body: "active" }, scheduledFor("scheduled", Date.now() + 3_600_000));
    assert.equal(await defer(await takeOne(await receiver(connection, "peeking", 1))), "modified");
    const got = await peek(connection, "peeking");
    assert.deepEqual(bodies(got), ["deferred", "active", "scheduled"]);
    assert.deepEqual(got.map((each) => annotation(each, "message-state") ?? 0), [1, 0, 2]);
  }));
await check("scheduled_message_comes_in_time_and_a_cancelled_one_never", () =>
  connected(async (connection) => {
    const due = Date.now() + 2_000;
    const messages = ["x", "cancelled"].map((body) => ({
      "message-id": body,
      message: rhea.message.encode(scheduledFor(body, due)),
    }));
    const answer = await manage(connection, "scheduling", "schedule-message", { messages });
    const numbers = answer["sequence-numbers"].map(Number);
    assert.deepEqual(numbers, [1, 2]);
    const cancelled = { "sequence-numbers": longs([numbers[1]]) };
    await manage(connection, "scheduling", "cancel-scheduled-message", cancelled);
    await refused(manage(connection, "scheduling", "cancel-scheduled-message", cancelled), "com.microsoft:message-not-found");
    const link = await receiver(connection, "scheduling", 2);
    const came = await takeOne(link);
    const late = Date.now() - due;
    assert.ok(late >= 0 && late < 1_000, `it came ${late} ms behind its time`);
    assert.deepEqual([came.message.body, Number(annotation(came, "enqueued-time"))], ["x", due]);
    await isQuiet(link);
  }));

// ---- sessions ----

const ofSession = (group_id, ...texts) => texts.map((body) => ({ body, group_id }));
await check("named_session_is_received_in_order", () =>
  connected(async (connection) => {
    for (const number of [1, 2, 3]) {
      await send(connection, "named-session", ...ofSession("a", `a${number}`), ...ofSession("b", `b${number}`));
    }
    await isQuiet(await accept(connection, "named-session", "nothing in it", { credit: 1 }));
    const link = await accept(connection, "named-session", "a", { credit: 1 });
    assert.equal(sessionOf(link), "a");
    const left = lockedUntil(link) - Date.now();
    assert.ok(left > 50_000 && left <= 60_000, `the lock ends in ${left} ms`);
    const first = await takeOne(link);
    assert.equal(await abandon(first), "modified"); // and stays the first
    link.add_credit(3);
    assert.deepEqual(bodies(await take(link, 3)), ["a1", "a2", "a3"]);
  }));
await check("described_session_filter_is_answered_described", () =>
  connected(async (connection) => {
    const link = await accept(connection, "named-session", "described", { described: true });
    const value = link.source.filter["com.microsoft:session-filter"];
    assert.deepEqual([Number(value.descriptor.value), value.value], [0x00000137000000c, "described"]);
  }));
await check("next_session_is_the_oldest", () =>
  connected(async (connection) => {
    await send(connection, "next-session", ...ofSession("first", "1"), ...ofSession("second", "2"));
    const one = await accept(connection, "next-session", null);
    const two = await accept(connection, "next-session", null);
    assert.deepEqual([sessionOf(one), sessionOf(two)], ["first", "second"]);
  }));
await check("without_a_free_session_the_wait_is_a_timeout", () =>
  connected(async (connection) => {
    const { took, slowest } = await beside(() => peek(connection, "empty"), () =>
      refused(accept(connection, "no-session", null, { timeout: 2_000 }), "com.microsoft:timeout"));
    assert.ok(took > 1_700 && took < 2_300 + 2 * slowest, `it took ${took} ms`);
  }));
await check("held_session_cannot_be_locked", () =>
  connected(async (connection) => {
    await accept(connection, "held-session", "s");
    await refused(accept(connection, "held-session", "s"), "com.microsoft:session-cannot-be-locked");
  }));
await check("renewed_session_lock_ends_later", () =>
  connected(async (connection) => {
    const link = await accept(connection, "held-session", "renewed");
    await pause(50);
    const { expiration } = await manage(connection, "held-session", "renew-session-lock", { "session-id": "renewed" });
    assert.ok(Number(expiration) > lockedUntil(link), "the lock does not end later");
  }));
await check("session_state_is_kept_and_cleared", async () => {
  const named = { "session-id": "s" };
  const stateOf = async (connection) => (await manage(connection, "state", "get-session-state", named))["session-state"];
  const setState = (connection, state) => manage(connection, "state", "set-session-state", { ...named, "session-state": state });
  await connected(async (connection) => {
    await accept(connection, "state", "s");
    assert.equal(await stateOf(connection), null);
    await setState(connection, Buffer.from("état"));
  });
  await connected(async (connection) => {
    await accept(connection, "state", "s");
    assert.equal(String(await stateOf(connection)), "état");
    await setState(connection, null);
    assert.equal(await stateOf(connection), null);
  });
});

// ---- topics ----

await check("subscriptions_get_what_their_rules_let_through", () =>
  connected(async (connection) => {
    const news = [["red", 1], ["red", 2], ["blue", 3]].map(([color, size]) => ({
      body: `${color} ${size}`,
      application_properties: { color, size },
    }));
    await send(connection, "news", ...news);
    const all = await take(await receiver(connection, "news/Subscriptions/all", 5), 3);
    assert.deepEqual(bodies(all), ["red 1", "red 2", "blue 3"]);
    assert.deepEqual(all.map(numberOf), [1, 2, 3]);
    const red = await receiver(connection, "news/subscriptions/red", 5);
    const got = await takeOne(red);
    assert.deepEqual([got.message.body, numberOf(got)], ["red 2", 1]);
    await isQuiet(red);
  }));
await check("subscriptions_settle_apart", () =>
  connected(async (connection) => {
    await send(connection, "settled-news", { body: "x" });
    const left = await takeOne(await receiver(connection, "settled-news/Subscriptions/left", 1));
    assert.equal(await complete(left), "accepted");
    assert.deepEqual(await peek(connection, "settled-news/Subscriptions/left"), []);
    const link = await receiver(connection, "settled-news/Subscriptions/right", 2);
    assert.equal(await abandon(await takeOne(link)), "modified");
    assert.equal((await takeOne(link)).message.delivery_count, 1);
  }));
await check("topic_cannot_be_received_from", () =>
  connected(async (connection) => {
    await refused(receiver(connection, "news"), "amqp:not-allowed");
    await refused(sender(connection, "news/Subscriptions/all"), "amqp:not-allowed");
  }));

// ---- errors ----

await check("missing_queue_is_not_found", () =>
  connected(async (connection) => {
    await refused(sender(connection, "nowhere"), "amqp:not-found", /could not be found/);
    await refused(receiver(connection, "nowhere"), "amqp:not-found", /could not be found/);
    await roundTrip("plain")(connection); // the connection stays usable
  }));
await check("queue_without_sends_is_disabled", () =>
  connected((connection) => refused(sender(connection, "no-sends"), "com.microsoft:entity-disabled")));
await check("queue_without_receives_is_disabled", () =>
  connected((connection) => refused(receiver(connection, "no-receives"), "com.microsoft:entity-disabled")));
await check("wrong_kind_of_receiver_is_refused", () =>
  connected(async (connection) => {
    await refused(receiver(connection, "state"), "amqp:not-allowed", /non-sessionful message receiver/);
    await refused(accept(connection, "plain", "s"), "amqp:not-allowed");
  }));

// ---- last, for it ends every connection ----

await check("client_goes_on_behind_a_restart", () =>
  connected(async (connection) => {
    const sending = await sender(connection, "restarting");
    await sendOne(sending, { body: "before" });
    const link = await receiver(connection, "restarting", 1);
    assert.equal((await takeOne(link)).message.body, "before"); // its lock ends with the service
    const back = new Promise((resolve) => link.once("receiver_open", resolve));
    await restartServer(); // takes its time where much else runs
    await within(WAIT_MS, back); // the library has opened the connection and its links again
    link.add_credit(2);
    await sendOne(sending, { body: "after" });
    const got = await take(link, 2);
    assert.deepEqual(bodies(got), ["before", "after"]);
    assert.deepEqual(got.map(({ message }) => message.delivery_count ?? 0), [1, 0]);
    assert.deepEqual(await Promise.all(got.map(complete)), ["accepted", "accepted"]);
  }, { ...PLAIN, reconnect: 200 }));

process.exit(0);
