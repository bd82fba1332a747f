// The client that most checks share, and the few things that they do with it.

import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import Long from "long";

export const { HUBWEIR_PLAIN, HUBWEIR_TLS, HUBWEIR_WRONG_KEY } = process.env;
// The library's own defaults wait half a minute between attempts.
export const OPTIONS = { retryOptions: { maxRetries: 0, retryDelayInMs: 200, timeoutInMs: 15_000 } };
export const WAIT_MS = 15_000;
const QUIET_MS = 500;

export const client = new ServiceBusClient(HUBWEIR_PLAIN, OPTIONS);
export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const bodies = (messages) => messages.map((message) => message.body);

/** Do something with what has a close, and close it. */
export async function using(closed, body) {
  try {
    return await body(closed);
  } finally {
    await closed.close();
  }
}

export const other = (connectionString, body, options) =>
  using(new ServiceBusClient(connectionString, { ...OPTIONS, ...options }), body);
export const send = (queue, messages, by = client) => using(by.createSender(queue), (sender) => sender.sendMessages(messages));

/** The next messages, exactly so many. */
export async function receive(receiver, count) {
  const got = [];
  while (got.length < count) {
    const more = await receiver.receiveMessages(count - got.length, { maxWaitTimeInMs: WAIT_MS });
    assert.ok(more.length > 0, `${got.length} of ${count} came`);
    got.push(...more);
  }
  return got;
}

export async function receiveOne(receiver) {
  return (await receive(receiver, 1))[0];
}

/** There is nothing at all, also nothing that is locked: what is only kept from this receiver would be seen. */
export async function isGone(receiver) {
  assert.deepEqual(bodies(await receiver.peekMessages(5, { fromSequenceNumber: Long.fromNumber(1) })), []);
}

/** Nothing comes for a while. */
export async function isEmpty(receiver) {
  assert.deepEqual(bodies(await receiver.receiveMessages(1, { maxWaitTimeInMs: QUIET_MS })), []);
}
