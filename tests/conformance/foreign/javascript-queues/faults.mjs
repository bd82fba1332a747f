// The official client through faults of the service: it sends to a queue, receives and completes (living.mjs).

import { ServiceBusClient } from "@azure/service-bus";
import { ended, say, sayError, sendUntilTold } from "./living.mjs";

const { HUBWEIR_PLAIN, HUBWEIR_ENTITY, HUBWEIR_TIMEOUT_S } = process.env;

const client = new ServiceBusClient(HUBWEIR_PLAIN, {
  retryOptions: { timeoutInMs: Number(HUBWEIR_TIMEOUT_S) * 1_000 },
});
const subscription = client.createReceiver(HUBWEIR_ENTITY).subscribe({
  processMessage: async (message) => say({ came: message.body }), // behind this the client completes it
  processError: async ({ error, errorSource }) => sayError(errorSource, error),
});

const sender = client.createSender(HUBWEIR_ENTITY);
await sendUntilTold((body, partitionKey) => sender.sendMessages({ body, partitionKey }));
await sender.close();
await ended;
await subscription.close();
await client.close();
process.exit(0); // the client's timers would keep the process for minutes
