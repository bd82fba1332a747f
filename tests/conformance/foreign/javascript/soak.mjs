// The official client over many minutes: what tests/conformance/soak/task.py says, in JavaScript.

import { EventHubConsumerClient, EventHubProducerClient, earliestEventPosition } from "@azure/event-hubs";
import { STEP_MS, EVERY_MS, PARTITIONS, run, signature } from "./soaking.mjs";

const { HUBWEIR_HOST, HUBWEIR_PLAIN, HUBWEIR_HUB } = process.env;

class Credential {
  made = 0;

  async getToken() {
    this.made += 1;
    const { token, expiresAtS } = signature();
    return { token, expiresOnTimestamp: expiresAtS * 1000 };
  }
}

function clients(way, credential) {
  const proof = way === "key" ? [HUBWEIR_PLAIN, HUBWEIR_HUB] : [HUBWEIR_HOST, HUBWEIR_HUB, credential];
  return { producer: new EventHubProducerClient(...proof), consumer: new EventHubConsumerClient("$Default", ...proof) };
}

/** One partition from its beginning: bodies, and the errors that were heard. */
class Reading {
  bodies = [];
  errors = [];

  constructor(consumer, partition) {
    consumer.subscribe(
      partition,
      {
        processEvents: async (events) => this.bodies.push(...events.map((event) => event.body)),
        processError: async (error) => this.errors.push(`${error.code ?? error.name}: ${error.message}`),
      },
      { startPosition: earliestEventPosition },
    );
  }

  async expect(count) {
    for (const until = Date.now() + STEP_MS / 2; this.bodies.length < count && Date.now() < until; ) {
      if (this.errors.length) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    if (this.errors.length) throw new Error(`the reader heard ${this.errors}`);
    if (this.bodies.length !== count) throw new Error(`${this.bodies.length} events of ${count} came`);
  }
}

async function send(producer, partitionId, body) {
  const batch = await producer.createBatch({ partitionId });
  batch.tryAdd({ body });
  await producer.sendBatch(batch);
}

async function busy(check, way) {
  const { producer, consumer } = clients(way, new Credential());
  const [partition] = PARTITIONS[way];
  const reading = new Reading(consumer, partition);
  for (let sent = 0; check.leftMs() > 0; ) {
    check.step("send");
    await send(producer, partition, `event ${sent}`);
    sent += 1;
    check.step("receive");
    await reading.expect(sent);
    if (sent % 12 === 0) {
      check.step("read the partition's properties");
      await producer.getPartitionProperties(partition);
    }
    await check.rest(EVERY_MS);
  }
}

async function idle(check, way) {
  const { producer, consumer } = clients(way, new Credential());
  const [, partition] = PARTITIONS[way];
  const reading = new Reading(consumer, partition);
  for (const count of [1, 2]) {
    check.step(`read the hub's properties, ${count}`);
    await producer.getEventHubProperties();
    check.step(`send, ${count}`);
    await send(producer, partition, `event ${count}`);
    check.step(`receive, ${count}`);
    await reading.expect(count);
    await check.rest(check.leftMs());
  }
}

/** Nobody else uses this credential: the reader's link, of one connection. */
async function renewed(check) {
  const credential = new Credential();
  const { consumer } = clients("token", credential);
  const reading = new Reading(consumer, PARTITIONS.token[1]);
  await check.rest(check.leftMs());
  if (reading.errors.length || credential.made < 3) {
    throw new Error(`${credential.made} tokens were made; the reader heard ${reading.errors}`);
  }
}

await run({
  key_busy: (check) => busy(check, "key"),
  key_idle: (check) => idle(check, "key"),
  token_busy: (check) => busy(check, "token"),
  token_idle: (check) => idle(check, "token"),
  tokens_renewed: renewed,
});
