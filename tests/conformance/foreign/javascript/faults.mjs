// The official client through faults of the service: it publishes and reads (living.mjs).

import { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } from "@azure/event-hubs";
import { ended, say, sayError, sendUntilTold } from "./living.mjs";

const { HUBWEIR_PLAIN, HUBWEIR_ENTITY, HUBWEIR_TIMEOUT_S } = process.env;
// What waited as its connection was lost learns of it when its time is over: by default after a minute.
const timeoutInSeconds = Number(HUBWEIR_TIMEOUT_S);
const options = { retryOptions: { timeoutInMs: timeoutInSeconds * 1_000 } };

const consumer = new EventHubConsumerClient("$Default", HUBWEIR_PLAIN, HUBWEIR_ENTITY, options);
const subscription = consumer.subscribe(
  {
    processEvents: async (events) => events.forEach((event) => say({ came: event.body })),
    processError: async (error) => sayError("reading", error),
  },
  { startPosition: earliestEventPosition, maxWaitTimeInSeconds: timeoutInSeconds },
);

const producer = new EventHubProducerClient(HUBWEIR_PLAIN, HUBWEIR_ENTITY, options);
await sendUntilTold((body, partitionKey) => producer.sendBatch([{ body }], { partitionKey }));
await producer.close();
await ended;
await subscription.close();
await consumer.close();
process.exit(0); // the client's timers would keep the process for minutes
