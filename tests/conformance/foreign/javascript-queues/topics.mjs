// Topics, their subscriptions, and rules as they come and go over AMQP.

import assert from "node:assert/strict";
import { check, refused } from "./checks.mjs";
import { bodies, client, isEmpty, isGone, receive, receiveOne, send, using } from "./queues.mjs";

const red = (body, size) => ({ body, applicationProperties: { color: "red", size } });
const numbers = (messages) => messages.map((message) => message.sequenceNumber.toNumber());

export async function checkTopics() {
  await check("subscriptions_get_what_their_rules_let_through", async () => {
    await send("news", red("small", 1));
    await send("news", [red("large", 2), { body: "blue", applicationProperties: { color: "blue", size: 2 } }]);
    await send("news", red("larger", 2.5));
    await using(client.createReceiver("news", "all"), async (receiver) => {
      const got = await receive(receiver, 4);
      assert.deepEqual(bodies(got), ["small", "large", "blue", "larger"]);
      assert.deepEqual(numbers(got), [1, 2, 3, 4]);
    });
    await using(client.createReceiver("news", "red"), async (receiver) => {
      const got = await receive(receiver, 2);
      assert.deepEqual(bodies(got), ["large", "larger"]);
      assert.deepEqual(numbers(got), [1, 2]);
      assert.deepEqual(got.map((message) => message.enqueuedSequenceNumber), [2, 4]);
      assert.deepEqual(got[0].applicationProperties, { color: "red", size: 2 });
      await isEmpty(receiver);
    });
  });
  await check("subscriptions_settle_apart", async () => {
    await send("settled-news", [{ body: "x" }, { body: "y" }]);
    await using(client.createReceiver("settled-news", "left"), (left) =>
      using(client.createReceiver("settled-news", "right"), async (right) => {
        const [x, y] = await receive(left, 2);
        const others = await receive(right, 2);
        assert.notEqual(x.lockToken, others[0].lockToken);
        await left.abandonMessage(x, { tried: true });
        await left.deferMessage(y);
        const again = await receiveOne(left);
        assert.deepEqual([again.body, again.deliveryCount, again.applicationProperties], ["x", 1, { tried: true }]);
        await left.completeMessage(again);
        const [deferred] = await left.receiveDeferredMessages(y.sequenceNumber);
        await left.renewMessageLock(deferred);
        await left.completeMessage(deferred);
        assert.deepEqual(others.map((message) => message.deliveryCount), [0, 0]);
        await isGone(left);
        assert.deepEqual(bodies(await right.peekMessages(5)), ["x", "y"]);
        for (const message of others) await right.completeMessage(message);
        await isGone(right);
      }));
  });
  await check("dead_letters_of_a_subscription_say_why", async () => {
    await send("dead-news", { body: "x" });
    await using(client.createReceiver("dead-news", "a"), async (receiver) => {
      await receiver.deadLetterMessage(await receiveOne(receiver), { deadLetterReason: "broken", deadLetterErrorDescription: "no wheels" });
      await isGone(receiver);
    });
    await using(client.createReceiver("dead-news", "a", { subQueueType: "deadLetter" }), async (receiver) => {
      const dead = await receiveOne(receiver);
      assert.deepEqual([dead.body, dead.deadLetterReason, dead.deadLetterErrorDescription], ["x", "broken", "no wheels"]);
      await receiver.completeMessage(dead);
      await isGone(receiver);
    });
    await using(client.createReceiver("dead-news", "b", { subQueueType: "deadLetter" }), isEmpty);
    await using(client.createReceiver("dead-news", "b"), receiveOne);
  });
  await check("session_of_a_subscription_is_received_in_order", async () => {
    for (const number of [1, 2]) {
      await send("session-news", [{ body: `a${number}`, sessionId: "a" }, { body: `b${number}`, sessionId: "b" }]);
    }
    await using(await client.acceptSession("session-news", "a", "b"), async (receiver) => {
      const got = await receive(receiver, 2);
      assert.deepEqual(bodies(got), ["b1", "b2"]);
      await receiver.setSessionState("seen b2");
      for (const message of got) await receiver.completeMessage(message);
    });
    await using(await client.acceptNextSession("session-news", "a"), async (receiver) => {
      assert.equal(receiver.sessionId, "a");
      assert.deepEqual(bodies(await receive(receiver, 2)), ["a1", "a2"]);
    });
    await using(await client.acceptSession("session-news", "a", "b"), async (receiver) => {
      assert.equal(await receiver.getSessionState(), "seen b2");
      await isGone(receiver);
    });
  });
  await check("scheduled_message_of_a_topic_comes_in_time", () =>
    using(client.createSender("scheduled-news"), async (sender) => {
      const due = new Date(1_000 * Math.ceil(Date.now() / 1_000) + 2_000);
      const [, cancelled] = await sender.scheduleMessages([{ body: "x" }, { body: "cancelled" }], due);
      await sender.cancelScheduledMessages(cancelled);
      await using(client.createReceiver("scheduled-news", "a"), async (receiver) => {
        const message = await receiveOne(receiver);
        const late = Date.now() - due;
        assert.ok(late >= 0 && late < 1_000, `it came ${late} ms behind its time`);
        assert.equal(message.body, "x");
        assert.equal(1_000 * Math.floor(message.enqueuedTimeUtc / 1_000), Number(due));
        await isEmpty(receiver);
      });
    }));
  await check("topic_cannot_be_received_from", async () => {
    await refused(using(client.createReceiver("news"), isEmpty), { text: /^InvalidOperationError: Nothing can be received/ });
    await refused(send("news/Subscriptions/all", { body: "x" }), { text: /^InvalidOperationError/ });
    await refused(using(client.createReceiver("news", "nowhere"), isEmpty), { code: "MessagingEntityNotFound" });
  });
  await check("rules_come_and_go_over_amqp", () => rules(client.createRuleManager("ruled-news", "a")));
}

async function rules(manager) {
  const listed = async (options) => {
    const found = [];
    for await (const page of manager.listRules().byPage(options)) found.push(...page);
    return found;
  };
  const [first, ...others] = await listed();
  assert.deepEqual([first.name, first.filter, others], ["$Default", { sqlExpression: "1=1" }, []]);
  const applicationProperties = { n: 7, real: 0.5, yes: true, when: new Date(1_577_934_245_000), text: "é" };
  const correlation = { correlationId: "c", subject: "s", contentType: "t", to: "u", applicationProperties };
  await manager.createRule("acts", { sqlExpression: "color = 'red'" }, { sqlExpression: "SET marked = 1" });
  await manager.createRule("plain", { sqlExpression: "color = 'blue'" });
  await manager.createRule("correlates", correlation);
  for (const options of [{}, { maxPageSize: 1 }, { maxPageSize: 2 }, { maxPageSize: 4 }]) {
    const found = await listed(options);
    assert.deepEqual(found.map((rule) => rule.name), ["$Default", "acts", "plain", "correlates"]);
    assert.deepEqual([found[1].filter, found[1].action], [{ sqlExpression: "color = 'red'" }, { sqlExpression: "SET marked = 1" }]);
    assert.deepEqual([found[2].filter, found[2].action], [{ sqlExpression: "color = 'blue'" }, {}]);
    for (const [name, value] of Object.entries(correlation)) assert.deepEqual([name, found[3].filter[name]], [name, value]);
  }
  await refused(manager.createRule("plain", { sqlExpression: "1=1" }), { code: "MessagingEntityAlreadyExists" });
  await refused(manager.createRule("bad", { sqlExpression: "color = " }), { text: /^ArgumentError/ });
  await manager.deleteRule("$Default");
  await refused(manager.deleteRule("$Default"), { code: "MessagingEntityNotFound" });
  await send("ruled-news", [red("x", 1), { body: "nothing asks for this" }, { body: "y", correlationId: "c" }]);
  await send("ruled-news", { ...correlation, body: "z" });
  await using(client.createReceiver("ruled-news", "a"), async (receiver) => {
    const got = await receive(receiver, 2);
    assert.deepEqual(bodies(got), ["x", "z"]);
    assert.deepEqual(got[0].applicationProperties, { color: "red", size: 1, marked: 1, RuleName: "acts" });
    await isEmpty(receiver);
  });
}
