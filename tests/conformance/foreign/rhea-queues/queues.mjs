// What this library leaves to its users of queues: messages that are waited for, answers to outcomes, the management node.

import assert from "node:assert/strict";
import rhea from "rhea";
import { WAIT_MS, ask, attached, event, send as sendOne, sender } from "./amqp.mjs";
import { within } from "./checks.mjs";

export const { types } = rhea;
export const QUIET_MS = 500;
export const SESSION_FILTER = "com.microsoft:session-filter";
export const DELETING = { snd_settle_mode: 1, rcv_settle_mode: 0 };

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const bodies = (came) => came.map(({ message }) => message.body);
export const annotation = ({ message }, name) => message.message_annotations?.[`x-opt-${name}`];
export const numberOf = (came) => Number(annotation(came, "sequence-number"));
export const longs = (numbers) => types.wrap_array(numbers, 0x81);
export const uuids = (tokens) => types.wrap_array(tokens, 0x98);

/** Send messages one after the other; each is accepted, or the error of its rejection is thrown. */
export async function send(connection, address, ...messages) {
  const link = await sender(connection, address);
  for (const message of messages) await sendOne(link, message);
  link.close();
}

/** A receiver under peek-lock with so much credit; what comes is kept, and settled by whoever takes it. */
export async function receiver(connection, address, credit = 1, { filter, ...options } = {}) {
  const link = connection.open_receiver({
    source: { address, filter },
    credit_window: 0,
    autoaccept: false,
    rcv_settle_mode: 1,
    ...options,
  });
  link.came = [];
  link.on("message", (context) => link.came.push(context));
  if (credit) link.add_credit(credit);
  return attached(link);
}

/** The next messages of a receiver, exactly so many. */
export async function take(link, count) {
  await within(WAIT_MS, (async () => {
    while (link.came.length < count) await event(link, "message");
  })());
  return link.came.splice(0, count);
}

export const takeOne = async (link) => (await take(link, 1))[0];

/** Nothing comes for a while. */
export async function isQuiet(link) {
  await pause(QUIET_MS);
  assert.deepEqual(bodies(link.came), []);
}

/** Tell an outcome and wait for the answer to it: its name, or the condition of a refusal. */
export async function settled({ delivery }, settle) {
  const answered = within(WAIT_MS, new Promise((resolve) => {
    delivery.link.on("settled", (context) => context.delivery === delivery && resolve());
  }));
  settle(delivery);
  await answered;
  const state = delivery.remote_state;
  return state.error ? String(state.error.condition) : state.constructor.composite_type;
}

export const complete = (came) => settled(came, (delivery) => delivery.accept());
export const abandon = (came, message_annotations) =>
  settled(came, (delivery) => delivery.modified({ delivery_failed: true, message_annotations }));
export const defer = (came) => settled(came, (delivery) => delivery.modified({ undeliverable_here: true }));
export const deadLetter = (came, info) =>
  settled(came, (delivery) => delivery.reject({ condition: "com.microsoft:dead-letter", description: "of a test", info }));

/** One request to a queue's management node; throws its error. */
export async function manage(connection, queue, operation, body) {
  const answer = await ask(connection, `${queue}/$management`, {
    application_properties: { operation: `com.microsoft:${operation}` },
    body,
  });
  const { statusCode, statusDescription, errorCondition } = answer.application_properties;
  if (statusCode >= 300) throw Object.assign(new Error(statusDescription), { condition: String(errorCondition) });
  return answer.body;
}

/** What peek shows from the first message on. */
export async function peek(connection, queue, count = 10) {
  const asked = { "from-sequence-number": types.wrap_long(1), "message-count": types.wrap_int(count) };
  const { messages = [] } = (await manage(connection, queue, "peek-message", asked)) ?? {};
  return messages.map(({ message }) => ({ message: rhea.message.decode(message) }));
}

/** Hold a session and receive from it: a named one, or with null the next; timeout: for how long to wait for that. */
export const accept = (connection, address, session, { described = false, timeout = WAIT_MS, credit = 0 } = {}) =>
  receiver(connection, address, credit, {
    filter: { [SESSION_FILTER]: described ? types.wrap_described(session, 0x00000137000000c) : session },
    properties: { "com.microsoft:timeout": types.wrap_uint(timeout) },
  });

/** Which session a receiver holds. */
export function sessionOf(link) {
  const value = link.source.filter[SESSION_FILTER];
  return value?.descriptor ? value.value : value;
}

/** When the lock of its session ends, of 10,000 ticks a millisecond from the year 1 on. */
export const lockedUntil = (link) => Number(BigInt(ticksOf(link)) / 10_000n - 62_135_596_800_000n);

function ticksOf(link) {
  const ticks = link.properties["com.microsoft:locked-until-utc"];
  return Buffer.isBuffer(ticks) ? ticks.readBigInt64BE() : ticks; // above 2**53 the library keeps the bytes
}
