// Topics, subscriptions and rules managed over HTTPS, at the port of everything else.

import assert from "node:assert/strict";
import { ServiceBusAdministrationClient } from "@azure/service-bus";
import { check, refused } from "./checks.mjs";
import { HUBWEIR_TLS, HUBWEIR_WRONG_KEY, client, receive, send, using } from "./queues.mjs";

const RETRIES = { retryOptions: { maxRetries: 0 } };
const administration = new ServiceBusAdministrationClient(HUBWEIR_TLS, RETRIES);
const MANY = 250;

async function all(pages) {
  const found = [];
  for await (const each of pages) found.push(each);
  return found;
}

const isRecent = (time) => assert.ok(Math.abs(time - Date.now()) < 60_000, `the time is ${time.toISOString()}`);
const NOT_FOUND = { code: "MessageEntityNotFoundError" };
const EXISTS = { code: "MessageEntityAlreadyExistsError" };

export async function checkAdministration() {
  await check("namespace_tells_its_tier", async () => {
    const found = await administration.getNamespaceProperties();
    assert.deepEqual([found.name, found.messagingSku, found.messagingUnits], ["hubweir", "Standard", undefined]);
  });
  await check("topic_is_administered", async () => {
    const made = await administration.createTopic("made", { defaultMessageTimeToLive: "PT1H", requiresDuplicateDetection: true });
    assert.deepEqual([made.name, made.defaultMessageTimeToLive, made.requiresDuplicateDetection], ["made", "PT1H", true]);
    await refused(administration.createTopic("made"), EXISTS);
    const found = await administration.getTopic("made");
    assert.deepEqual([found.maxSizeInMegabytes, found.status, found.enablePartitioning], [1_024, "Active", false]);
    const changed = await administration.updateTopic({ ...found, userMetadata: "<mine & yours>", defaultMessageTimeToLive: "PT2H" });
    assert.deepEqual([changed.userMetadata, changed.defaultMessageTimeToLive], ["<mine & yours>", "PT2H"]);
    const runtime = await administration.getTopicRuntimeProperties("made");
    assert.deepEqual([runtime.subscriptionCount, runtime.scheduledMessageCount, runtime.sizeInBytes], [0, 0, 0]);
    isRecent(runtime.createdAt);
    const names = (await all(administration.listTopics())).map((topic) => topic.name);
    assert.ok(names.includes("made") && names.includes("news"), `${names}`);
    await administration.deleteTopic("made");
    assert.equal(await administration.topicExists("made"), false);
    assert.equal(await administration.topicExists("news"), true);
  });
  await check("subscription_is_administered", () => topic("subscribed", async () => {
    const settings = { lockDuration: "PT13S", maxDeliveryCount: 7, requiresSession: true, deadLetteringOnMessageExpiration: true };
    const made = await administration.createSubscription("subscribed", "Mine", settings);
    for (const [name, value] of Object.entries(settings)) assert.deepEqual([name, made[name]], [name, value]);
    assert.deepEqual([made.topicName, made.subscriptionName], ["subscribed", "Mine"]);
    await refused(administration.createSubscription("subscribed", "mine"), EXISTS);
    const found = await administration.getSubscription("subscribed", "Mine");
    assert.deepEqual([found.status, found.deadLetteringOnFilterEvaluationExceptions], ["Active", true]);
    const changed = await administration.updateSubscription({ ...found, maxDeliveryCount: 9, status: "Disabled" });
    assert.deepEqual([changed.maxDeliveryCount, changed.status, changed.lockDuration], [9, "Disabled", "PT13S"]);
    await refused(client.acceptNextSession("subscribed", "Mine"), { code: "MessagingEntityDisabled" });
    await administration.deleteSubscription("subscribed", "Mine");
    assert.equal(await administration.subscriptionExists("subscribed", "Mine"), false);
  }));
  await check("counts_of_a_subscription_are_told", () => topic("counted", async () => {
    await administration.createSubscription("counted", "a");
    await send("counted", [{ body: "active" }, { body: "dead" }]);
    await using(client.createSender("counted"), (sender) =>
      sender.scheduleMessages({ body: "later" }, new Date(Date.now() + 3_600_000)));
    await using(client.createReceiver("counted", "a"), async (receiver) => {
      const [active, dead] = await receive(receiver, 2);
      await receiver.deadLetterMessage(dead);
      await receiver.abandonMessage(active);
    });
    const found = await administration.getSubscriptionRuntimeProperties("counted", "a");
    assert.deepEqual([found.activeMessageCount, found.deadLetterMessageCount, found.totalMessageCount], [1, 1, 2]);
    assert.deepEqual([found.transferMessageCount, found.transferDeadLetterMessageCount], [0, 0]);
    isRecent(found.createdAt);
    const of = await administration.getTopicRuntimeProperties("counted");
    assert.deepEqual([of.subscriptionCount, of.scheduledMessageCount], [1, 1]);
    assert.ok(of.sizeInBytes > 0, "the topic has no size");
  }));
  await check("rule_keeps_filter_action_and_parameters", () => topic("ruled", async () => {
    await administration.createSubscription("ruled", "a");
    const values = { text: "<é & co>", yes: true, whole: 7, large: 3_000_000_000, real: 0.5, when: new Date(1_577_934_245_000) };
    const sqlParameters = Object.fromEntries(Object.entries(values).map(([name, value]) => [`@${name}`, value]));
    const filter = { sqlExpression: "text = @text AND n = @whole", sqlParameters };
    const action = { sqlExpression: "SET n = @whole", sqlParameters: { "@whole": 7 } };
    const made = await administration.createRule("ruled", "a", "sql", filter, action);
    assert.deepEqual([made.name, made.filter, made.action], ["sql", filter, action]);
    await refused(administration.createRule("ruled", "a", "sql", filter), EXISTS);
    const correlation = { subject: "s", correlationId: "c", applicationProperties: values };
    await administration.createRule("ruled", "a", "correlation", correlation);
    const [byDefault, sql, second] = await all(administration.listRules("ruled", "a"));
    assert.deepEqual([byDefault.name, byDefault.filter.sqlExpression], ["$Default", "1=1"]);
    assert.deepEqual([sql.name, sql.filter, sql.action], ["sql", filter, action]);
    for (const [name, value] of Object.entries(correlation)) assert.deepEqual([name, second.filter[name]], [name, value]);
    const changed = { ...(await administration.getRule("ruled", "a", "sql")), filter: { sqlExpression: "n = 1" } };
    assert.equal((await administration.updateRule("ruled", "a", changed)).filter.sqlExpression, "n = 1");
    await administration.deleteRule("ruled", "a", "sql");
    assert.equal(await administration.ruleExists("ruled", "a", "sql"), false);
    await refused(administration.createRule("ruled", "a", "bad", { sqlExpression: "n = " }), { code: "ServiceError" });
  }));
  await check("first_rule_of_a_subscription_is_the_one_asked_for", () => topic("first-ruled", async () => {
    const defaultRuleOptions = { name: "first", filter: { sqlExpression: "n = 1" }, action: { sqlExpression: "SET n = 2" } };
    await administration.createSubscription("first-ruled", "a", { defaultRuleOptions });
    const [rule, ...others] = await all(administration.listRules("first-ruled", "a"));
    assert.deepEqual([rule.name, rule.filter.sqlExpression, rule.action.sqlExpression], ["first", "n = 1", "SET n = 2"]);
    assert.deepEqual(others, []);
  }));
  await check("lists_come_in_pages_in_order", () => topic("txt/.-_123", async (name) => {
    const names = async () => (await all(administration.listSubscriptions(name))).map((each) => each.subscriptionName);
    assert.deepEqual(await names(), []);
    const wanted = Array.from({ length: MANY }, (_, number) => `s-${String(number).padStart(3, "0")}`);
    await administration.createSubscription(name, wanted.at(-1));
    assert.deepEqual(await names(), wanted.slice(-1));
    await Promise.all(wanted.slice(0, -1).reverse().map((each) => administration.createSubscription(name, each)));
    assert.deepEqual(await names(), wanted);
    assert.equal((await all(administration.listSubscriptionsRuntimeProperties(name))).length, MANY);
    assert.ok((await all(administration.listTopics())).some((each) => each.name === name));
  }));
  await check("administration_refusals_have_codes", async () => {
    await refused(administration.getTopic("nowhere"), NOT_FOUND);
    await refused(administration.getSubscription("news", "nowhere"), NOT_FOUND);
    await refused(administration.getRule("news", "all", "nowhere"), NOT_FOUND);
    await refused(administration.createSubscription("nowhere", "a"), NOT_FOUND);
    await refused(administration.deleteTopic("nowhere"), NOT_FOUND);
    await refused(administration.createTopic("bad", { defaultMessageTimeToLive: "PT0S" }), { code: "ServiceError" });
    const stranger = new ServiceBusAdministrationClient(HUBWEIR_WRONG_KEY.replace("UseDevelopmentEmulator=true", ""), RETRIES);
    await refused(stranger.getTopic("news"), { code: "UnauthorizedRequestError" });
  });
}

/** A topic for as long as the body runs. */
async function topic(name, body) {
  await administration.createTopic(name);
  await body(name);
  await administration.deleteTopic(name);
}
