// rhea over many minutes: what tests/conformance/soak/task.py says, by a library that knows nothing of event hubs.
// `key` proves its rights by SASL PLAIN; `token` puts tokens to $cbs itself, over links that it attaches once.

import { readFileSync } from "node:fs";
import rhea from "rhea";
import { EARLIEST, bodyOf, event, eventOf, position, send } from "./amqp.mjs";
import { EVERY_MS, PARTITIONS, STEP_MS, TOKEN_S, run, signature } from "./soaking.mjs";

const { HUBWEIR_HOST, HUBWEIR_PORT, HUBWEIR_RULE, HUBWEIR_KEY, HUBWEIR_HUB, HUBWEIR_CA_FILE } = process.env;
const DETACH_FORCED = "amqp:link:detach-forced";

function connect(way, failed) {
  const container = rhea.create_container();
  container.on("error", (error) => failed(`error: ${error}`));
  const key = { port: Number(HUBWEIR_PORT), username: HUBWEIR_RULE, password: HUBWEIR_KEY };
  const tls = { port: 5671, transport: "tls", ca: [readFileSync(HUBWEIR_CA_FILE)], username: "anonymous" };
  const connection = container.connect({ host: HUBWEIR_HOST, reconnect: false, ...(way === "key" ? key : tls) });
  connection.on("connection_close", () => failed(`the connection was closed: ${connection.error}`));
  connection.on("disconnected", () => failed("the connection is gone"));
  return connection;
}

/** A pair of links to a node of requests, for the connection's life; answers to its requests. */
class Requests {
  #waiting = new Map();
  #number = 0;

  constructor(connection, node, failed) {
    this.replyTo = `answers of ${node}`;
    const answers = connection.open_receiver({ source: { address: node }, target: { address: this.replyTo } });
    this.sender = connection.open_sender({ target: { address: node } });
    for (const link of [answers, this.sender]) {
      link.on(`${link.is_sender() ? "sender" : "receiver"}_close`, () => failed(`a link of ${node} is gone: ${link.error}`));
    }
    answers.on("message", ({ message }) => this.#waiting.get(message.correlation_id)?.(message));
  }

  async ask(request) {
    if (!this.sender.sendable()) await event(this.sender, "sendable");
    this.#number += 1;
    const message_id = `request ${this.#number}`;
    const answered = new Promise((resolve) => this.#waiting.set(message_id, resolve));
    this.sender.send({ message_id, reply_to: this.replyTo, ...request });
    const { application_properties: said } = await answered;
    if (said["status-code"] > 202) throw new Error(`${said["status-code"]} ${said["status-description"]}`);
  }
}

async function live(check, way, isBusy) {
  let trouble = "";
  const failed = (why) => (trouble ||= why);
  const connection = connect(way, failed);
  const partition = PARTITIONS[way][isBusy ? 0 : 1];
  let tokens = 0;
  const management = new Requests(connection, "$management", failed);
  if (way === "token") {
    const cbs = new Requests(connection, "$cbs", failed);
    const putToken = async () => {
      const name = `sb://${HUBWEIR_HOST}/${HUBWEIR_HUB}`;
      const application_properties = { operation: "put-token", type: "servicebus.windows.net:sastoken", name };
      await cbs.ask({ application_properties, body: signature().token });
      tokens += 1;
    };
    check.step("put the first token");
    await putToken();
    setInterval(() => putToken().catch((error) => failed(`a token was refused: ${error.message}`)), TOKEN_S * 900);
  }
  let got = 0;
  const address = `${HUBWEIR_HUB}/ConsumerGroups/$Default/Partitions/${partition}`;
  const reader = connection.open_receiver({ source: { address, filter: position(EARLIEST) } });
  reader.on("message", ({ message }) => (got += Number(bodyOf(message) === `event ${got}`)));
  reader.on("receiver_close", () => failed(`the reader is gone: ${reader.error}`));
  let sender;
  const openSender = () => {
    const opened = (sender = connection.open_sender({ target: { address: `${HUBWEIR_HUB}/Partitions/${partition}` } }));
    opened.on("sender_close", () => {
      if (sender === opened) sender = undefined; // an idle one may be detached, and is opened again
      if (isBusy || opened.error?.condition !== DETACH_FORCED) failed(`the sender is gone: ${opened.error}`);
    });
  };
  const asked = { application_properties: { operation: "READ", type: "com.microsoft:eventhub", name: HUBWEIR_HUB }, body: "" };
  for (let sent = 0; isBusy ? check.leftMs() > 0 : sent < 2; ) {
    if (!isBusy || sent % 12 === 0) {
      check.step("read the hub's properties");
      await management.ask(asked);
    }
    check.step("send");
    if (sender === undefined) openSender();
    await send(sender, eventOf(`event ${sent}`));
    sent += 1;
    check.step("receive");
    for (const until = Date.now() + STEP_MS / 2; got < sent && Date.now() < until && !trouble; ) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    if (trouble) throw new Error(trouble);
    if (got !== sent) throw new Error(`${got} events of ${sent} came`);
    await check.rest(isBusy ? EVERY_MS : check.leftMs());
  }
  if (trouble) throw new Error(trouble);
  if (way === "token" && tokens < 3) throw new Error(`${tokens} tokens were put`);
}

await run({
  key_busy: (check) => live(check, "key", true),
  key_idle: (check) => live(check, "key", false),
  token_busy: (check) => live(check, "token", true),
  token_idle: (check) => live(check, "token", false),
});
