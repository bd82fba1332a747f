// What the clients that live through faults share: how they speak, and when they end.
// A line of JSON for each body that was sent, {"sent": …}, or came, {"came": …}, and for each error, {"error": …}. A line
// on the input ends the sends, {"stopped": true}; the end of the input ends everything.

import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

let isOver = false;
const input = createInterface({ input: process.stdin }).on("line", () => { isOver = true; });

export const ended = new Promise((resolve) => input.on("close", resolve));
export const say = (said) => process.stdout.write(`${JSON.stringify(said)}\n`);
export const sayError = (what, error) => say({ error: `${what}: ${error.code ?? error.name}` });

/** Send one body after the other, every second one with a key, until a line comes; go on after every error. */
export async function sendUntilTold(send) {
  for (let number = 1; !isOver; number += 1) {
    const body = `from JavaScript ${number}`;
    try {
      await send(body, number % 2 ? undefined : `key-${number % 5}`);
      say({ sent: body });
    } catch (error) {
      sayError("sending", error);
    }
    await pause(20);
  }
  say({ stopped: true });
}
