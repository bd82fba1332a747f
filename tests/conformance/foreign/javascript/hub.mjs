// The clients that all checks share, and the few things that they do with them.

import {
  EventHubConsumerClient,
  EventHubProducerClient,
} from "@azure/event-hubs";
import { within } from "./checks.mjs";

export const { HUBWEIR_PLAIN, HUBWEIR_TLS, HUBWEIR_WRONG_KEY, HUBWEIR_TOKEN, HUBWEIR_HUB, HUBWEIR_KEY_VECTORS } = process.env;
export const GROUP = "$Default";
export const MEBIBYTE = 1024 * 1024;
// The library's own defaults wait half a minute between attempts.
export const retryOptions = { maxRetries: 2, retryDelayInMs: 200, timeoutInMs: 15_000 };
export const OPTIONS = { retryOptions };
export const READ_MS = 20_000;

export const producer = new EventHubProducerClient(HUBWEIR_PLAIN, HUBWEIR_HUB, OPTIONS);
export const consumer = new EventHubConsumerClient(GROUP, HUBWEIR_PLAIN, HUBWEIR_HUB, OPTIONS);

/** Subscribe to one partition and resolve with the first `count` events; rejects with the first error. */
export async function read(partitionId, startPosition, count, { client = consumer, ...options } = {}) {
  let subscription;
  const events = [];
  const done = new Promise((resolve, reject) => {
    subscription = client.subscribe(
      partitionId,
      {
        processEvents: async (batch) => {
          events.push(...batch);
          if (events.length >= count) resolve(events);
        },
        processError: async (error) => reject(error),
      },
      { startPosition, maxBatchSize: 100, maxWaitTimeInSeconds: 1, ...options },
    );
  });
  try {
    return await within(READ_MS, done);
  } finally {
    await subscription?.close();
  }
}

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
export const bodies = (events) => events.map((event) => event.body);
export const lastNumber = async (partition) =>
  (await producer.getPartitionProperties(partition)).lastEnqueuedSequenceNumber;
export const tail = async (partition) => ({ sequenceNumber: await lastNumber(partition) });

export async function withClient(client, body) {
  try {
    return await body(client);
  } finally {
    await client.close();
  }
}

export const otherProducer = (connectionString, hub, body, options) =>
  withClient(new EventHubProducerClient(connectionString, hub, { ...OPTIONS, ...options }), body);
export const otherConsumer = (hub, body, group = GROUP) =>
  withClient(new EventHubConsumerClient(group, HUBWEIR_PLAIN, hub, OPTIONS), body);
