// Sends a message for each condition of the environment to the queue `orders`, and says with which code it was refused.

import { check } from "./checks.mjs";
import { HUBWEIR_PLAIN, client, other, send } from "./queues.mjs";

await client.close();
await other(HUBWEIR_PLAIN, async (by) => {
  for (const condition of JSON.parse(process.env.HUBWEIR_CONDITIONS)) {
    await check(condition, async () => {
      const error = await send("orders", { body: "x" }, by).then(() => undefined, (reason) => reason);
      return error?.code;
    });
  }
});
process.exit(0);
