// Publishes one message after the other until its input ends; then prints how many it published, and how many are
// stored. Usage: node steady-bot.mjs nats|http
import { PATIENT, TRANSPORTS, newUser } from "./support.mjs";

const user = newUser();
const memory = await TRANSPORTS[process.argv[2]].connect(undefined, { ...PATIENT, publish: 2_000, retry: 300_000 });
let isEnding = false;
process.stdin.resume().on("end", () => (isEnding = true));

let published = 0;
let min_seq = 0;
while (!isEnding) {
  min_seq = await memory.publish(user, "user", `Message ${published}`);
  published += 1;
  if (published === 20) console.log("under way");
}

/** Repeats a request until it has a reply: a server that was killed may not be back yet. */
async function insist(ask) {
  for (;;) {
    const reply = await ask().catch((failure) => failure);
    if (!(reply instanceof Error)) return reply;
    if (!reply.retryable) throw reply;
    await new Promise(setImmediate);
  }
}

const { messages } = await insist(() => memory.history(user, { limit: 1000, min_seq }));
const expected = messages.map((_, index) => `Message ${published - messages.length + index}`);
const isOrdered = messages.every(({ content }, index) => content === expected[index]);
const status = await insist(() => memory.status(user, { min_seq }));
console.log(JSON.stringify({ published, stored: status.messages, isOrdered }));
await memory.close();
