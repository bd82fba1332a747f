// Sends one message to the queue `orders` by @azure/service-bus, which is left to try again by itself.

import { check } from "./checks.mjs";
import { HUBWEIR_PLAIN, client, other, send } from "./queues.mjs";

// As often as it does by default, with a second between, where the default is half a minute.
const RETRIES = { retryOptions: { maxRetries: 3, retryDelayInMs: 1_000 } };
await client.close();
await check("send_that_is_told_to_wait_is_sent_again", () =>
  other(HUBWEIR_PLAIN, (by) => send("orders", { body: "patient" }, by), RETRIES));
process.exit(0);
