// Dead-letters a message of the queue `orders`, which is answered with an error: the client must raise.

import { check, refused } from "./checks.mjs";
import { HUBWEIR_PLAIN, client, other, receiveOne, send, using } from "./queues.mjs";

await client.close();
await check("dead_letter_answered_with_an_error_raises", () =>
  other(HUBWEIR_PLAIN, async (by) => {
    await send("orders", { body: "x" }, by);
    await using(by.createReceiver("orders"), async (receiver) =>
      refused(receiver.deadLetterMessage(await receiveOne(receiver)), { code: "GeneralError", text: /said by the client/ }));
  }));
process.exit(0);
