// What this library leaves to its users: waiting for an event, and the requests and annotations of event hubs.

import assert from "node:assert/strict";
import rhea from "rhea";
import { within } from "./checks.mjs";

export const { HUBWEIR_HOST, HUBWEIR_PORT, HUBWEIR_RULE, HUBWEIR_KEY, HUBWEIR_HUB, HUBWEIR_CA_FILE, HUBWEIR_KEY_VECTORS } =
  process.env;
export const WAIT_MS = 10_000;
export const BATCH_FORMAT = 0x80013700;
export const MEBIBYTE = 1024 * 1024;
export const PLAIN = { username: HUBWEIR_RULE, password: HUBWEIR_KEY };

/** The first of these events, and its context. */
export async function event(emitter, ...names) {
  const listeners = new Map();
  const happened = new Promise((resolve) => {
    for (const name of names) listeners.set(name, (context) => resolve([name, context]));
  });
  listeners.forEach((listener, name) => emitter.on(name, listener));
  try {
    return await within(WAIT_MS, happened);
  } finally {
    listeners.forEach((listener, name) => emitter.removeListener(name, listener));
  }
}

/** A connection for body, closed at its end; by default authorised with SASL PLAIN. */
export async function connected(body, options = PLAIN) {
  const container = rhea.create_container();
  container.on("error", () => {}); // told by the events that are waited for
  const connection = container.connect({
    host: HUBWEIR_HOST,
    port: Number(HUBWEIR_PORT),
    reconnect: false,
    ...options,
  });
  try {
    const [name, context] = await event(connection, "connection_open", "connection_error", "disconnected");
    if (name !== "connection_open") throw context.connection.error ?? context.error ?? new Error(name);
    return await body(connection);
  } finally {
    connection.close();
  }
}

/** The link when it stands; throws the error of the peer that refuses it. */
export async function attached(link) {
  const kind = link.is_sender() ? "sender" : "receiver";
  await event(link, `${kind}_open`);
  const { source, target } = link.remote.attach;
  if (source?.address || target?.address) return link;
  // A refusal is an attach without source and target, then a detach that says why.
  if (!link.error) await event(link, `${kind}_error`);
  throw link.error;
}

export const sender = (connection, address) => attached(connection.open_sender({ target: { address } }));

/** Send one message and resolve when it is accepted; throws the error of a rejection. */
export async function send(link, message, format = 0) {
  if (!link.sendable()) await event(link, "sendable");
  const delivery = link.send(rhea.message.encode(message), undefined, format);
  const [name, context] = await event(link, "accepted", "rejected", "sender_error");
  if (name !== "accepted") throw context.delivery?.remote_state?.error ?? link.error;
  assert.equal(context.delivery, delivery);
}

export const encoded = (body) => rhea.message.encode({ body: rhea.message.data_section(Buffer.from(body)) });
export const batchOf = (bodies) => ({ body: rhea.message.data_sections(bodies.map(encoded)) });
export const eventOf = (body, key) => ({
  body: rhea.message.data_section(Buffer.from(body)),
  ...(key === undefined ? {} : { message_annotations: { "x-opt-partition-key": key } }),
});
export const annotation = (message, name) => message.message_annotations[`x-opt-${name}`];
export const bodyOf = (message) => Buffer.from(message.body.content).toString();

// The library's own filter.selector has another name for the filter.
export const position = (expression) => ({
  "apache.org:selector-filter:string": rhea.types.wrap_described(`amqp.annotation.${expression}`, 0x468c00000004),
});
export const EARLIEST = "x-opt-offset > '-1'";

/** A receiver of one partition that gave `count` credit. */
export function receiver(connection, partition, expression, count, { hub = HUBWEIR_HUB, group = "$Default" } = {}) {
  const address = `${hub}/ConsumerGroups/${group}/Partitions/${partition}`;
  const link = connection.open_receiver({ source: { address, filter: position(expression) }, credit_window: 0 });
  link.messages = [];
  link.on("message", ({ message }) => link.messages.push(message));
  link.add_credit(count);
  return link;
}

export async function read(connection, partition, expression, count, options) {
  const link = await attached(receiver(connection, partition, expression, count, options));
  await within(WAIT_MS, (async () => {
    while (link.messages.length < count) await event(link, "message");
  })());
  link.close();
  return link.messages;
}

/** One request to a node and its answer, as $cbs and $management know them. */
export async function ask(connection, node, request) {
  const replyTo = `reply-${Math.random()}`;
  const answers = connection.open_receiver({ source: { address: node }, target: { address: replyTo } });
  await attached(answers);
  const requests = await sender(connection, node);
  const answered = event(answers, "message");
  requests.send({ message_id: "request-1", reply_to: replyTo, ...request });
  const [, { message }] = await answered;
  requests.close();
  answers.close();
  assert.equal(message.correlation_id, "request-1");
  return message;
}

export async function properties(connection, type, name, partition) {
  const application_properties = { operation: "READ", type: `com.microsoft:${type}`, name, partition };
  if (partition === undefined) delete application_properties.partition;
  const answer = await ask(connection, "$management", { application_properties, body: "" });
  if (answer.application_properties["status-code"] >= 300) {
    const { "error-condition": condition, "status-description": description } = answer.application_properties;
    throw Object.assign(new Error(description), { condition: String(condition) });
  }
  return answer.body;
}

export const partitionOf = (connection, id, hub = HUBWEIR_HUB) => properties(connection, "partition", hub, id);
export const lastNumber = async (connection, id, hub) => Number((await partitionOf(connection, id, hub)).last_enqueued_sequence_number);

export async function refused(operation, condition, text = /./) {
  const error = await operation.then(
    () => assert.fail("it was not refused"),
    (reason) => reason,
  );
  assert.equal(String(error.condition), condition, error.message);
  assert.match(error.description ?? error.message, text);
}
