// Checks that last for many minutes, side by side; each prints one JSON line. See tests/conformance/soak/task.py.

import { createHmac } from "node:crypto";

const { HUBWEIR_HOST, HUBWEIR_HUB, HUBWEIR_RULE, HUBWEIR_KEY } = process.env;
const BEGAN = Date.now();
const SOAK_MS = Number(process.env.HUBWEIR_SOAK_S) * 1000;
export const TOKEN_S = Number(process.env.HUBWEIR_TOKEN_S);
export const EVERY_MS = 5_000;
export const STEP_MS = 90_000;
// Of partitions: busy, idle.
export const PARTITIONS = { key: ["0", "1"], token: ["2", "3"] };

/** A new token for the hub, and when it expires. */
export function signature() {
  const expiresAtS = Math.floor(Date.now() / 1000) + TOKEN_S;
  const resource = encodeURIComponent(`sb://${HUBWEIR_HOST}/${HUBWEIR_HUB}`);
  const signed = createHmac("sha256", HUBWEIR_KEY).update(`${resource}\n${expiresAtS}`).digest("base64");
  const token = `SharedAccessSignature sr=${resource}&sig=${encodeURIComponent(signed)}&se=${expiresAtS}&skn=${HUBWEIR_RULE}`;
  return { token, expiresAtS };
}

class Check {
  isOver = false;
  #step = "begin";
  #since = Date.now();

  constructor(name) {
    this.name = name;
  }

  leftMs() {
    return Math.max(0, BEGAN + SOAK_MS - Date.now());
  }

  step(name) {
    this.#step = name;
    this.#since = Date.now();
  }

  /** Wait so long, which is no step. */
  rest(milliseconds) {
    this.#step = "rest";
    this.#since = Date.now() + milliseconds;
    return new Promise((resolve) => setTimeout(resolve, milliseconds));
  }

  get hangs() {
    return Date.now() - this.#since > STEP_MS;
  }

  end(problem = "") {
    if (this.isOver) return;
    this.isOver = true;
    const minutes = ((Date.now() - BEGAN) / 60_000).toFixed(1);
    const detail = problem ? `after ${minutes} min, at '${this.#step}': ${problem}` : "";
    process.stdout.write(JSON.stringify({ check: this.name, ok: !problem, detail }) + "\n");
  }
}

/** Run checks side by side, and end the process when all are over or hang. */
export async function run(bodies) {
  const checks = Object.entries(bodies).map(([name, body]) => {
    const check = new Check(name);
    body(check).then(
      () => check.end(),
      (error) => check.end(`${error?.code ?? error?.condition ?? error?.name}: ${error?.message ?? error}`),
    );
    return check;
  });
  while (!checks.every((check) => check.isOver)) {
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    for (const check of checks) if (check.hangs) check.end(`it waits for more than ${STEP_MS / 1000} s`);
  }
  process.exit(0);
}
