// Runs checks one after the other and prints one JSON line for each; a check that throws or hangs is not ok.
// Those that HUBWEIR_CHECKS names, else all.

import assert from "node:assert/strict";
import readline from "node:readline";

const CHECK_MS = 45_000;
const WANTED = process.env.HUBWEIR_CHECKS ? new Set(process.env.HUBWEIR_CHECKS.split(",")) : undefined;

const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

export async function check(name, body, limitMs = CHECK_MS) {
  if (WANTED && !WANTED.has(name)) return;
  try {
    const detail = await within(limitMs, body());
    say({ check: name, ok: true, detail: String(detail ?? "") });
  } catch (error) {
    say({ check: name, ok: false, detail: `${error?.code ?? error?.name}: ${error?.message ?? error}` });
  }
}

/** Ask for a restart of the server; resolves when it runs again. */
export async function restartServer() {
  const input = readline.createInterface({ input: process.stdin });
  say({ ask: "restart" });
  await new Promise((resolve) => input.once("line", resolve));
  input.close();
}

export async function within(milliseconds, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no result within ${milliseconds} ms`)), milliseconds);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Do an operation, and beside it an ordinary one again and again: how long the first took, and the slowest of these,
 * which is what this machine adds to a time. */
export async function beside(ordinary, operation) {
  let slowest = 0;
  let isOver = false;
  const repeated = (async () => {
    while (!isOver) slowest = Math.max(slowest, await timed(ordinary));
  })();
  const [took] = await Promise.all([timed(operation).finally(() => (isOver = true)), repeated]);
  return { took, slowest };
}

async function timed(operation) {
  const begin = Date.now();
  await operation();
  return Date.now() - begin;
}

/** The operation must fail, with this code or a text that matches; returns the error's text. */
export async function refused(operation, { code, text = /./ }) {
  const error = await operation.then(
    () => assert.fail("it was not refused"),
    (reason) => reason,
  );
  if (code !== undefined) assert.equal(error.code, code, error.message);
  assert.match(error.message, text);
  return error.message;
}
