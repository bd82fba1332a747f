// Asks for the counts of the queue `orders`, of its description, and says what the client makes of each answer.

import { ServiceBusAdministrationClient } from "@azure/service-bus";
import { check } from "./checks.mjs";

const administration = new ServiceBusAdministrationClient(process.env.HUBWEIR_TLS, { retryOptions: { maxRetries: 0 } });
await check("description", async () => (await administration.getQueue("orders")).name);
await check("counts", async () => (await administration.getQueueRuntimeProperties("orders")).activeMessageCount);
process.exit(0);
