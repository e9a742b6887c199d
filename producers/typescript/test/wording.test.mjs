// Errors have the words of the Python client's errors for the same case.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import { EventRejected } from "mnemon";
import { connectNats } from "mnemon/nats";

import { LossyProxy, MNEMON_NATS_URL, MNEMON_TENANT, TRANSPORTS, newUser } from "./support.mjs";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** Runs Python expressions, each with the client `memory`; prints their errors as JSON. */
const PYTHON = `
import asyncio, json, sys
from datetime import UTC, datetime
from mnemon_contracts.verbs.ask import RejectedEvent
from mnemon_contracts.verbs.tools import ForgetReplyV1
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import EventRejected

async def find_errors(url, tenant, *expressions):
    errors = []
    async with MemoryClient.connect(url, tenant=tenant) as memory:
        for expression in expressions:
            try:
                outcome = eval(expression)
                errors.append(str(outcome) if isinstance(outcome, Exception) else await outcome)
            except Exception as error:
                errors.append(str(error))
    print(json.dumps(errors))

asyncio.run(find_errors(*sys.argv[1:]))
`;

const REJECTED = {
  seq: 7,
  at: "2026-11-21T10:00:00Z",
  event: "message",
  reason: "invalid_body",
  error: "content: Field required",
};
const REPLY = { seen_seq: 1, candidates: [] };
const publish = (fields) => (memory) => memory.publish("u", "user", "hi", fields);
const search = (fields) => (memory) => memory.search("u", "tea", fields);

const CASES = [
  [(memory) => memory.save("", "Likes tea"), 'memory.save("", "Likes tea")'],
  [(memory) => memory.save("\0", "Likes tea"), String.raw`memory.save("\0", "Likes tea")`],
  [(memory) => memory.save("\ud800", "Likes tea"), String.raw`memory.save("\ud800", "Likes tea")`],
  [(memory) => memory.save("я".repeat(128), "Likes tea"), 'memory.save("я" * 128, "Likes tea")'],
  [(memory) => memory.save(7, "Likes tea"), 'memory.save(7, "Likes tea")'],
  [publish({ conversation: "" }), 'memory.publish("u", "user", "hi", conversation="")'],
  [publish({ id: " x" }), 'memory.publish("u", "user", "hi", id=" x")'],
  [publish({ id: "" }), 'memory.publish("u", "user", "hi", id="")'],
  [publish({ id: "x".repeat(300) }), 'memory.publish("u", "user", "hi", id="x" * 300)'],
  [publish({ task_id: "я".repeat(200) }), 'memory.publish("u", "user", "hi", task_id="я" * 200)'],
  [publish({ sent_at: "2026-02-31T10:00:00Z" }), 'memory.publish("u", "user", "hi", sent_at="2026-02-31T10:00:00Z")'],
  [
    publish({ sent_at: "0001-01-01T00:00:00Z" }),
    'memory.publish("u", "user", "hi", sent_at=datetime(1, 1, 1, tzinfo=UTC))',
  ],
  [publish({ tool_calls: [{ nam: "x" }] }), 'memory.publish("u", "user", "hi", tool_calls=[{"nam": "x"}])'],
  [
    (memory) => memory.save("u", "Likes tea", { expires_at: "soon" }),
    'memory.save("u", "Likes tea", expires_at="soon")',
  ],
  [(memory) => memory.publish("u", "nobody", "hi"), 'memory.publish("u", "nobody", "hi")'],
  [(memory) => memory.publish("u", "user", 5), 'memory.publish("u", "user", 5)'],
  [(memory) => memory.publish("u", "user", "\0"), String.raw`memory.publish("u", "user", "\0")`],
  [(memory) => memory.publish("u", "user", "x".repeat(2 ** 20)), 'memory.publish("u", "user", "x" * 2**20)'],
  [search({ limit: 0 }), 'memory.search("u", "tea", limit=0)'],
  [search({ limit: 1000 }), 'memory.search("u", "tea", limit=1000)'],
  [search({ limit: NaN }), 'memory.search("u", "tea", limit=float("nan"))'],
  [search({ threshold: 2 }), 'memory.search("u", "tea", threshold=2)'],
  [search({ scope: ["nowhere"] }), 'memory.search("u", "tea", scope=["nowhere"])'],
  [search({ preceding: [..."abcde"] }), 'memory.search("u", "tea", preceding=[*"abcde"])'],
  [(memory) => memory.restore("u", { ...REPLY }), 'memory.restore("u", ForgetReplyV1(seen_seq=1))'],
  [
    (memory) => memory.restore("u", { ...REPLY, id: "wk_1" }),
    'memory.restore("u", ForgetReplyV1(seen_seq=1, id="wk_1"))',
  ],
  [
    () => Promise.reject(new EventRejected(REJECTED)),
    `EventRejected(RejectedEvent.parse(b'${JSON.stringify(REJECTED)}'))`,
  ],
];

test("errors have the words of the Python client", async () => {
  const expressions = CASES.map(([, expression]) => expression);
  const command = ["run", "python", "-c", PYTHON, MNEMON_NATS_URL, MNEMON_TENANT, ...expressions];
  const { stdout } = await promisify(execFile)("uv", command, { cwd: ROOT });
  const expected = Object.fromEntries(JSON.parse(stdout).map((error, number) => [expressions[number], error]));
  const memory = await TRANSPORTS.nats.connect();
  const found = {};
  for (const [call, expression] of CASES) {
    found[expression] = await call(memory).then(
      (reply) => reply,
      (error) => error.message,
    );
  }
  await memory.close();
  assert.deepEqual(found, expected);
});

test("a wrong value of several types names all that are right", async () => {
  const memory = await TRANSPORTS.nats.connect();
  const { message } = await memory.save("u", "Likes tea", { importance: "huge" }).catch((error) => error);
  await memory.close();
  assert.equal(message, "importance: Input should be a valid integer, or Input should be 'high', 'normal' or 'low'");
});

test("a server that is away is named with the next step, in seconds", async () => {
  const proxy = new LossyProxy(MNEMON_NATS_URL);
  await proxy.start();
  const memory = await TRANSPORTS.nats.connect(proxy.url("nats"), { publish: 200, retry: 400, ask: 200, save: 1_500 });
  await proxy.stop();
  const describe = (error) => error.message;
  const errors = [
    await memory.publish(newUser(), "user", "hi", { id: "m1" }).catch(describe),
    await memory.read(newUser()).catch(describe),
    await memory.save(newUser(), "Likes tea").catch(describe),
    await memory.addTask(newUser(), "Buy tea", { task_id: "t1" }).catch(describe),
  ];
  const repeated = [
    await memory.addTask(newUser(), "Buy tea").catch((error) => error),
    await memory.addDocument(newUser(), "Tea").catch((error) => error),
    await memory.forget(newUser(), { query: "tea" }).catch((error) => error),
  ];
  await memory.close();
  assert.deepEqual(errors, [
    'event "m1" is not known to be stored: the server did not answer in time; publish again with the same id',
    "timeout: no reply to read within 0.2 s; repeat the request",
    "timeout: no reply to save within 1.5 s; repeat the request",
    "timeout: no reply to tasks within 0.2 s; repeat the request",
  ]);
  const advice = "read the memory before you repeat the request, which may make another change";
  assert.equal(
    repeated[0].message,
    `timeout: no reply to tasks within 0.2 s, but the change may take effect; ${advice}`,
  );
  assert.deepEqual(
    repeated.map(({ code, retryable }) => [code, retryable]),
    Array(3).fill(["timeout", false]),
  );
  const failure = await connectNats("nats://bot:s3cret@127.0.0.1:1", { tenant: "acme" }).catch((error) => error);
  assert.match(
    failure.message,
    /^no connection to NATS at nats:\/\/\*\*\*@127\.0\.0\.1:1: .*\. Check the address, the login and the server$/,
  );
});
