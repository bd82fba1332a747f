// Everything that an application does with queues and topics by @azure/service-bus, against the namespace of the environment.
// One file above the usual length: a list of checks in the order of the table, each a few lines, is read as one.

import assert from "node:assert/strict";
import Long from "long";
import WebSocket from "ws";
import { checkAdministration } from "./administration.mjs";
import { beside, check, refused, restartServer } from "./checks.mjs";
import {
  HUBWEIR_PLAIN,
  HUBWEIR_TLS,
  HUBWEIR_WRONG_KEY,
  bodies,
  client,
  isEmpty,
  isGone,
  other,
  pause,
  receive,
  receiveOne,
  send,
  using,
} from "./queues.mjs";
import { checkTopics } from "./topics.mjs";

// ---- connecting ----

const roundTrip = (queue) => async (by) => {
  await send(queue, { body: "hello" }, by);
  await using(by.createReceiver(queue), async (receiver) => {
    const message = await receiveOne(receiver);
    assert.equal(message.body, "hello");
    assert.equal((await receiver.peekMessages(1, { fromSequenceNumber: Long.fromNumber(1) })).length, 1);
    await receiver.completeMessage(message);
  });
};
await check("connects_over_plain_tcp", () => other(HUBWEIR_PLAIN, roundTrip("plain")));
await check("connects_over_tls", () => other(HUBWEIR_TLS, roundTrip("tls")));
await check("connects_over_websocket", () =>
  other(HUBWEIR_TLS, roundTrip("websocket"), { webSocketOptions: { webSocket: WebSocket } }));
await check("wrong_key_is_unauthorised", () =>
  other(HUBWEIR_WRONG_KEY, (by) => refused(send("plain", { body: "x" }, by), { code: "UnauthorizedAccess" })));

// ---- sending ----

await check("single_message_keeps_body_and_properties", async () => {
  const sent = {
    body: { an: ["object", 1] },
    messageId: "id",
    contentType: "application/json",
    correlationId: "correlation",
    subject: "subject",
    to: "to",
    replyTo: "reply to",
    replyToSessionId: "reply session",
    sessionId: "key",
    partitionKey: "key",
    applicationProperties: { int: 7, large: 2 ** 40, negative: -5, real: 0.5, text: "é", yes: true, when: new Date(1_577_934_245_000) },
  };
  await send("single", { ...sent, timeToLive: 600_000 });
  await using(client.createReceiver("single"), async (receiver) => {
    const got = await receiveOne(receiver);
    const shown = { ...sent, applicationProperties: { ...sent.applicationProperties, when: 1_577_934_245_000 } }; // a time as a number
    for (const [name, value] of Object.entries(shown)) assert.deepEqual([name, got[name]], [name, value]);
    assert.equal(got.deliveryCount, 0);
    assert.match(got.lockToken, /^[0-9a-f-]{36}$/);
    // The client takes the time between its own creation-time and our expiry.
    assert.ok(Math.abs(got.timeToLive - 600_000) < 10_000, `time to live ${got.timeToLive}`);
    assert.equal(got.expiresAtUtc - got.enqueuedTimeUtc, 600_000);
    const annotations = Object.keys(got._rawAmqpMessage.messageAnnotations).sort();
    assert.deepEqual(annotations, ["x-opt-enqueued-time", "x-opt-locked-until", "x-opt-partition-key", "x-opt-sequence-number"]);
    await receiver.completeMessage(got);
  });
});
await check("message_sent_again_is_a_new_one", async () => {
  await send("again", { body: "x", messageId: "id", subject: "s", applicationProperties: { own: 1 } });
  await using(client.createReceiver("again"), async (receiver) => {
    await receiver.abandonMessage(await receiveOne(receiver));
    const first = await receiveOne(receiver);
    await send("again", first);
    const second = await receiveOne(receiver);
    assert.deepEqual([first.deliveryCount, second.deliveryCount], [1, 0]);
    assert.deepEqual([second.body, second.messageId, second.subject, second.applicationProperties], ["x", "id", "s", { own: 1 }]);
    assert.ok(second.sequenceNumber.greaterThan(first.sequenceNumber));
    assert.notEqual(second.lockToken, first.lockToken);
  });
});
await check("batch_is_its_messages_in_order", () =>
  using(client.createSender("batch"), async (sender) => {
    const batch = await sender.createMessageBatch();
    assert.ok(batch.tryAddMessage({ body: "a", subject: "first", applicationProperties: { n: 1 } }));
    assert.ok(batch.tryAddMessage({ body: "b" }));
    await sender.sendMessages(batch);
    await sender.sendMessages([{ body: "c" }, { body: "d" }]);
    await using(client.createReceiver("batch"), async (receiver) => {
      const got = await receive(receiver, 4);
      assert.deepEqual(bodies(got), ["a", "b", "c", "d"]);
      assert.deepEqual(got.map((message) => message.sequenceNumber.toNumber()), [1, 2, 3, 4]);
      assert.deepEqual([got[0].subject, got[1].subject], ["first", undefined]);
      assert.ok(got.every((message) => message.messageId), "a message has no id");
      await isEmpty(receiver);
    });
  }));
await check("batch_limit_is_a_quarter_mebibyte", () =>
  using(client.createSender("small"), async (sender) =>
    assert.equal((await sender.createMessageBatch()).maxSizeInBytes, 262_144)));
await check("oversize_is_refused", async () => {
  for (const size of [262_144, 1_000_000]) {
    await refused(send("small", { body: Buffer.alloc(size) }), { code: "MessageSizeExceeded" });
  }
  await send("small", { body: Buffer.alloc(262_000) }); // with what a message has besides: just below
  await using(client.createReceiver("small"), async (receiver) => {
    const [{ body, sequenceNumber }, ...others] = await receiver.peekMessages(5);
    assert.deepEqual([body.length, sequenceNumber.toNumber(), others], [262_000, 1, []]);
  });
});

// ---- receiving ----

await check("received_and_deleted_messages_are_gone", async () => {
  await send("deleting", [{ body: "a" }, { body: "b" }]);
  await using(client.createReceiver("deleting", { receiveMode: "receiveAndDelete" }), async (receiver) => {
    assert.deepEqual(bodies(await receive(receiver, 2)), ["a", "b"]);
    await isGone(receiver);
  });
});
await check("empty_queue_returns_in_time", () =>
  using(client.createReceiver("empty"), async (receiver) => {
    const begin = Date.now();
    assert.deepEqual(await receiver.receiveMessages(10, { maxWaitTimeInMs: 1_500 }), []);
    const took = Date.now() - begin;
    assert.ok(took > 1_400 && took < 3_000, `it took ${took} ms`);
    await send("empty", { body: "later" });
    assert.equal((await receiveOne(receiver)).body, "later");
  }));
await check("completed_message_is_gone", async () => {
  await send("completing", { body: "x" });
  await using(client.createReceiver("completing"), async (receiver) => {
    await receiver.completeMessage(await receiveOne(receiver));
    await isEmpty(receiver);
    await isGone(receiver);
  });
});
await check("abandoned_message_comes_again_with_its_new_properties", async () => {
  await send("abandoning", [{ body: "x", applicationProperties: { kept: 1, changed: "before" } }, { body: "behind it" }]);
  await using(client.createReceiver("abandoning"), async (receiver) => {
    await receiver.abandonMessage(await receiveOne(receiver), { changed: "after", added: true });
    const [again, behind] = await receive(receiver, 2);
    assert.deepEqual([again.body, again.deliveryCount, again.sequenceNumber.toNumber()], ["x", 1, 1]); // at its old place
    assert.deepEqual(again.applicationProperties, { kept: 1, changed: "after", added: true });
    assert.deepEqual([behind.body, behind.deliveryCount], ["behind it", 0]);
    await receiver.completeMessage(again);
    await receiver.completeMessage(behind);
    await isGone(receiver);
  });
});
await check("deferred_message_is_received_by_number", async () => {
  await send("deferring", { body: "x" });
  await using(client.createReceiver("deferring"), async (receiver) => {
    const { sequenceNumber } = await receiveOne(receiver).then(async (message) => {
      await receiver.deferMessage(message);
      return message;
    });
    await isEmpty(receiver);
    const [message] = await receiver.receiveDeferredMessages(sequenceNumber);
    assert.deepEqual([message.body, message.state], ["x", "deferred"]);
    await receiver.completeMessage(message);
    await refused(receiver.receiveDeferredMessages(sequenceNumber), { code: "MessageNotFound" });
    await isGone(receiver);
  });
});
await check("dead_lettered_message_says_why", async () => {
  await send("dead", [{ body: "reason" }, { body: "none" }]);
  await using(client.createReceiver("dead"), async (receiver) => {
    const [reason, none] = await receive(receiver, 2);
    await receiver.deadLetterMessage(reason, { deadLetterReason: "broken", deadLetterErrorDescription: "no wheels", own: 1 });
    await receiver.deadLetterMessage(none);
    await isGone(receiver);
  });
  await using(client.createReceiver("dead", { subQueueType: "deadLetter" }), async (receiver) => {
    const [reason, none] = await receive(receiver, 2);
    assert.deepEqual([reason.body, reason.deadLetterReason, reason.deadLetterErrorDescription], ["reason", "broken", "no wheels"]);
    assert.equal(reason.applicationProperties.own, 1);
    assert.deepEqual([none.body, none.deadLetterReason, none.deadLetterErrorDescription], ["none", undefined, undefined]);
    for (const message of [reason, none]) await receiver.completeMessage(message);
    await isGone(receiver);
  });
});
await check("expired_message_is_dead_lettered", async () => {
  await send("expiring", { body: "x", timeToLive: 1_000 });
  await using(client.createReceiver("expiring", { subQueueType: "deadLetter" }), async (receiver) => {
    const dead = await receiveOne(receiver);
    assert.deepEqual([dead.body, dead.deadLetterReason], ["x", "TTLExpiredException"]);
    assert.ok(Date.now() - dead.enqueuedTimeUtc >= 1_000, "it was there for less than a second");
  });
  await using(client.createReceiver("expiring"), isGone);
});

// ---- locks ----

const NO_RENEWAL = { maxAutoLockRenewalDurationInMs: 0 };
await check("lock_is_renewed", async () => {
  await send("locks", { body: "renewed" });
  await using(client.createReceiver("locks", NO_RENEWAL), async (receiver) => {
    const message = await receiveOne(receiver);
    const before = message.lockedUntilUtc;
    await pause(3_000);
    assert.ok((await receiver.renewMessageLock(message)) > before, "the lock does not end later");
    await pause(3_000);
    await receiver.completeMessage(message);
    await isGone(receiver);
  });
});
await check("lock_that_ended_is_lost", async () => {
  await send("locks", { body: "lost" });
  await using(client.createReceiver("locks", NO_RENEWAL), async (receiver) => {
    const message = await receiveOne(receiver);
    await pause(5_500);
    await refused(receiver.completeMessage(message), { code: "MessageLockLost" });
    await refused(receiver.renewMessageLock(message), { code: "MessageLockLost" });
    const again = await receiveOne(receiver);
    assert.deepEqual([again.body, again.deliveryCount], ["lost", 1]);
    await receiver.completeMessage(again);
    await isGone(receiver);
  });
});
await check("settles_through_another_client", async () => {
  await send("other-client", { body: "x" });
  const message = await using(client.createReceiver("other-client"), receiveOne);
  await other(HUBWEIR_PLAIN, (by) =>
    using(by.createReceiver("other-client"), async (receiver) => {
      await receiver.renewMessageLock(message);
      await receiver.completeMessage(message);
      await isGone(receiver);
    }));
});

// ---- peek and schedule ----

await check("peek_of_an_empty_queue_is_quick", () =>
  using(client.createReceiver("peeking"), async (receiver) => {
    const begin = Date.now();
    assert.deepEqual(await receiver.peekMessages(5), []);
    assert.ok(Date.now() - begin < 1_000, `it took ${Date.now() - begin} ms`);
  }));
await check("peek_shows_every_state", async () => {
  await send("peeking", [{ body: "deferred" }, { body: "active" }]);
  await using(client.createSender("peeking"), (sender) =>
    sender.scheduleMessages({ body: "scheduled" }, new Date(Date.now() + 3_600_000)));
  await using(client.createReceiver("peeking"), async (receiver) => {
    await receiver.deferMessage(await receiveOne(receiver));
    const got = await receiver.peekMessages(5, { fromSequenceNumber: Long.fromNumber(1) });
    assert.deepEqual(bodies(got), ["deferred", "active", "scheduled"]);
    assert.deepEqual(got.map((message) => message.state), ["deferred", "active", "scheduled"]);
    assert.equal((await receiveOne(receiver)).body, "active");
  });
});
await check("scheduled_message_comes_in_time_and_a_cancelled_one_never", () =>
  using(client.createSender("scheduling"), async (sender) => {
    const due = new Date(1_000 * Math.ceil(Date.now() / 1_000) + 2_000);
    const numbers = await sender.scheduleMessages([{ body: "x" }, { body: "cancelled" }], due);
    assert.equal(numbers.length, 2);
    await sender.cancelScheduledMessages(numbers[1]);
    await refused(sender.cancelScheduledMessages(numbers[1]), { code: "MessageNotFound" });
    await using(client.createReceiver("scheduling"), async (receiver) => {
      const message = await receiveOne(receiver);
      const late = Date.now() - due;
      assert.ok(late >= 0 && late < 1_000, `it came ${late} ms behind its time`);
      assert.equal(message.body, "x");
      assert.equal(1_000 * Math.floor(message.enqueuedTimeUtc / 1_000), Number(due));
      await receiver.completeMessage(message);
      await isEmpty(receiver);
      await isGone(receiver);
    });
  }));
await check("duplicate_is_stored_once", async () => {
  await send("duplicates", { body: "first", messageId: "id" });
  await send("duplicates", [{ body: "second", messageId: "id" }, { body: "other", messageId: "other" }]);
  await using(client.createReceiver("duplicates"), async (receiver) => {
    assert.deepEqual(bodies(await receive(receiver, 2)), ["first", "other"]);
    await isEmpty(receiver);
  });
});

// ---- fragments ----

await check("key_or_turn_chooses_the_fragment", async () => {
  for (const body of ["a", "b"]) {
    await send("spread", { body, partitionKey: "key" });
  }
  for (const body of ["0", "1", "2"]) {
    await send("spread", { body });
  }
  await using(client.createReceiver("spread"), async (receiver) => {
    const got = await receive(receiver, 5);
    const fragments = Object.fromEntries(got.map((each) => [each.body, each.sequenceNumber.shiftRight(48).toNumber()]));
    assert.equal(fragments.a, fragments.b);
    assert.deepEqual([fragments[1], fragments[2]], [(fragments[0] + 1) % 16, (fragments[0] + 2) % 16]);
  });
});

// ---- sessions ----

await check("named_session_is_received_in_order", async () => {
  for (const number of [1, 2, 3]) {
    await send("named-session", [{ body: `a${number}`, sessionId: "a" }, { body: `b${number}`, sessionId: "b" }]);
  }
  await using(await client.acceptSession("named-session", "nothing in it"), isEmpty);
  await using(await client.acceptSession("named-session", "a"), async (receiver) => {
    assert.equal(receiver.sessionId, "a");
    const left = receiver.sessionLockedUntilUtc - Date.now();
    assert.ok(left > 50_000 && left <= 60_000, `the lock ends in ${left} ms`);
    const [first] = await receive(receiver, 1);
    await receiver.abandonMessage(first); // and it stays the first
    const got = await receive(receiver, 3);
    assert.deepEqual(bodies(got), ["a1", "a2", "a3"]);
    assert.deepEqual(got.map((message) => message.deliveryCount), [1, 0, 0]);
  });
});
await check("next_session_is_the_oldest", async () => {
  await send("next-session", [{ body: "1", sessionId: "first" }, { body: "2", sessionId: "second" }]);
  const one = await client.acceptNextSession("next-session");
  const two = await client.acceptNextSession("next-session");
  assert.deepEqual([one.sessionId, two.sessionId], ["first", "second"]);
  await Promise.all([one.close(), two.close()]);
});
await check("without_a_free_session_the_wait_is_a_timeout", async () => {
  const ordinary = async () => using(await client.acceptSession("held-session", "ordinary"), () => {});
  const quick = { retryOptions: { maxRetries: 0, timeoutInMs: 3_000 } };
  const { took, slowest } = await beside(ordinary, () =>
    other(HUBWEIR_PLAIN, (by) => refused(by.acceptNextSession("no-session"), { code: "ServiceTimeout" }), quick));
  assert.ok(took > 2_700 && took < 3_300 + 2 * slowest, `it took ${took} ms`);
});
await check("held_session_cannot_be_locked", async () =>
  using(await client.acceptSession("held-session", "s"), () =>
    refused(client.acceptSession("held-session", "s"), { code: "SessionCannotBeLocked" })));
await check("renewed_session_lock_ends_later", async () =>
  using(await client.acceptSession("held-session", "renewed", NO_RENEWAL), async (receiver) => {
    const before = receiver.sessionLockedUntilUtc;
    await pause(50);
    const later = (await receiver.renewSessionLock()) - before;
    assert.ok(later >= 50 && later < 50_000, `the lock ends ${later} ms later`);
  }));
await check("session_state_is_kept_and_cleared", async () => {
  await using(await client.acceptSession("state", "s"), async (receiver) => {
    assert.equal(await receiver.getSessionState(), null);
    await receiver.setSessionState("état");
  });
  await using(await client.acceptSession("state", "s"), async (receiver) => {
    assert.equal(await receiver.getSessionState(), "état");
    await receiver.setSessionState(null);
    assert.equal(await receiver.getSessionState(), null);
  });
});

// ---- errors ----

await check("missing_queue_is_not_found", async () => {
  await refused(send("nowhere", { body: "x" }), { code: "MessagingEntityNotFound" });
  await refused(using(client.createReceiver("nowhere"), isEmpty), { code: "MessagingEntityNotFound" });
});
await check("queue_without_sends_is_disabled", () => refused(send("no-sends", { body: "x" }), { code: "MessagingEntityDisabled" }));
await check("queue_without_receives_is_disabled", () =>
  refused(using(client.createReceiver("no-receives"), isEmpty), { code: "MessagingEntityDisabled" }));
await check("wrong_kind_of_receiver_is_refused", async () => {
  await refused(using(client.createReceiver("state"), isEmpty), { text: /non-sessionful message receiver/ });
  // The client makes a text of its own for every refusal of a named session.
  await refused(client.acceptSession("plain", "s"), {});
});

// ---- topics and administration ----

await checkTopics();
await checkAdministration();

await client.close();

// ---- last, for it ends every connection ----

await check("client_goes_on_behind_a_restart", () =>
  other(
    HUBWEIR_PLAIN,
    (by) =>
      using(by.createSender("restarting"), (sender) =>
        using(by.createReceiver("restarting"), async (receiver) => {
          await sender.sendMessages({ body: "before" });
          assert.equal((await receiveOne(receiver)).body, "before"); // its lock ends with the service
          await restartServer();
          await sender.sendMessages({ body: "after" });
          const got = await receive(receiver, 2);
          assert.deepEqual(got.map((message) => [message.body, message.deliveryCount]), [["before", 1], ["after", 0]]);
          for (const message of got) await receiver.completeMessage(message);
        })),
    { retryOptions: { maxRetries: 5, retryDelayInMs: 500, timeoutInMs: 15_000 } },
  ));
process.exit(0);
