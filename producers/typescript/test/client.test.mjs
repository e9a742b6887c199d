import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import {
  AskFailed,
  EventRejected,
  InvalidBody,
  InvalidId,
  NotConnected,
  PublishFailed,
  TenantMoved,
  connectHttp,
} from "mnemon";
import { connectNats } from "mnemon/nats";

import {
  LossyProxy,
  MNEMON_GATEWAY_URL,
  MNEMON_KEY,
  MNEMON_NATS_URL,
  MNEMON_TENANT,
  PATIENT,
  TRANSPORTS,
  newUser,
  testEach,
} from "./support.mjs";

const HOSTILE_IDS = [
  "-",
  "--",
  "a.b",
  "100%",
  "%2E",
  "*>",
  "a b",
  "\t\r",
  "a/b",
  "a/save",
  "?#&",
  "иван",
  "漢😀",
  "\x7f\x80\xa0",
  "\u2003\ufeff",
  "x".repeat(255),
];
const said = (reply) => reply.messages.map(({ role, content }) => [role, content]);

testEach("published and saved memory is in the context", async (memory) => {
  const user = newUser();
  await memory.save(user, "Prefers night trains to planes", { importance: "high" });
  const seq = await memory.publish(user, "user", "My sister is Vera.", { sent_at: new Date("2026-11-21T10:00:00Z") });
  const context = await memory.context(user, { query: "How do I get to Porto?", min_seq: seq });
  assert.deepEqual(context.degraded, []);
  assert.equal(context.error, undefined);
  assert.ok(context.seen_seq >= seq);
  assert.match(context.messages[0].content, /night trains/);
  assert.equal(context.messages.find(({ role }) => role === "user").content, "[2026-11-21 10:00] My sister is Vera.");
});

testEach("facts are saved, found, read, changed, forgotten and restored", async (memory) => {
  const user = newUser();
  const saved = await memory.save(user, "Plays the cello in an orchestra");
  assert.equal(saved.decision, "saved");
  const found = await memory.search(user, "Which instrument?", { min_seq: saved.seen_seq, threshold: 0 });
  assert.deepEqual(
    found.hits.map(({ id }) => id),
    [saved.id],
  );
  assert.equal((await memory.get(user, saved.id)).fact.text, "Plays the cello in an orchestra");
  const changed = await memory.update(user, { id: saved.id, text: "Plays the viola in an orchestra" });
  assert.equal(changed.fact.text, "Plays the viola in an orchestra");
  assert.deepEqual(
    (await memory.readAll(user)).facts.map(({ text }) => text),
    ["Plays the viola in an orchestra"],
  );
  const forgotten = await memory.forget(user, { query: "the viola" });
  assert.equal(forgotten.id, saved.id);
  assert.equal((await memory.read(user)).total, 0);
  assert.equal((await memory.restore(user, forgotten)).decision, "saved");
  await assert.rejects(memory.forget(user, { id: "pf_999" }), {
    name: "AskFailed",
    code: "not_found",
    retryable: false,
  });
});

testEach("data, tasks, documents and conversations have their verbs", async (memory) => {
  const user = newUser();
  assert.deepEqual((await memory.setProfile(user, { city: "Porto", language: "pt" })).profile, {
    city: "Porto",
    language: "pt",
  });
  assert.deepEqual((await memory.setProfile(user, { language: null })).profile, { city: "Porto" });
  const { task_id } = await memory.addTask(user, "Buy train tickets", { due_at: "2026-12-01" });
  assert.equal((await memory.finishTask(user, task_id)).tasks[0].done, true);
  assert.deepEqual((await memory.removeTask(user, task_id)).tasks, []);
  const { document_id, seen_seq } = await memory.addDocument(user, "The train to Porto leaves at 21:40.", {
    title: "Timetable",
  });
  const found = await memory.search(user, "When does the train leave?", {
    scope: ["documents"],
    min_seq: seen_seq,
    threshold: 0,
  });
  assert.deepEqual([found.hits[0].id, found.hits[0].passage.title], [document_id, "Timetable"]);
  assert.deepEqual(
    (await memory.documents(user)).documents.map(({ title }) => title),
    ["Timetable"],
  );
  assert.deepEqual((await memory.removeDocument(user, document_id)).documents, []);
  await memory.publish(user, "user", "Before", { conversation: "one" });
  await memory.clear(user, { conversation: "one" });
  const seq = await memory.publish(user, "user", "After", { conversation: "one" });
  assert.deepEqual(said(await memory.history(user, { conversation: "one", min_seq: seq })), [["user", "After"]]);
  const newest = await memory.publish(user, "user", "Newest", { conversation: "one", wait: true });
  assert.deepEqual(said(await memory.history(user, { conversation: "one", limit: 1, before: newest })), [
    ["user", "After"],
  ]);
  const started = await memory.start(user, { discard_previous: true });
  assert.equal((await memory.status(user, { min_seq: started })).messages, 0);
});

testEach("the same id is stored once", async (memory) => {
  const user = newUser();
  for (let time = 0; time < 3; time += 1) await memory.publish(user, "user", "Once.", { id: "telegram:1" });
  const seq = await memory.publish(user, "assistant", "Noted.", { wait: true });
  assert.deepEqual(said(await memory.history(user, { min_seq: seq })), [
    ["user", "Once."],
    ["assistant", "Noted."],
  ]);
});

testEach("ids of any kind name the same user over both transports", async (memory, transport) => {
  const other = await TRANSPORTS[transport === "nats" ? "http" : "nats"].connect();
  try {
    for (const id of HOSTILE_IDS) {
      const text = `I am ${id}`.trim();
      const seq = await memory.publish(id, "user", text, { conversation: id });
      const { messages } = await other.history(id, { conversation: id, min_seq: seq });
      assert.equal(messages.at(-1)?.content, text, JSON.stringify(id));
    }
  } finally {
    await other.close();
  }
});

testEach("what cannot be sent is refused before it is sent", async (memory, transport) => {
  const invalidIds = [
    "",
    "\0",
    "\ud800",
    "я".repeat(128),
    7,
    null,
    ...(transport === "http" ? [".", "..", "a\nb"] : []),
  ];
  for (const id of invalidIds) {
    await assert.rejects(memory.publish(id, "user", "hi"), { name: "InvalidId", field: "user" });
    await assert.rejects(memory.save(id, "Likes tea with milk"), InvalidId);
  }
  const publish = (fields) => memory.publish("u", "user", "hi", fields);
  await assert.rejects(publish({ conversation: "" }), { name: "InvalidId", field: "conversation" });
  await assert.rejects(publish({ contents: "x" }), { name: "InvalidBody", field: "contents" });
  await assert.rejects(publish({ sent_at: "2026-02-31T10:00:00Z" }), { name: "InvalidBody", field: "sent_at" });
  await assert.rejects(publish({ sent_at: new Date(NaN) }), { name: "InvalidBody", field: "sent_at" });
  for (const sent_at of ["0001-01-01T00:00:00Z", "0002-01-01T00:00:00+05:00", new Date(253370764800000)]) {
    await assert.rejects(publish({ sent_at }), { name: "InvalidBody", field: "sent_at", problem: /^must be in the years/ });
  }
  await assert.rejects(publish({ id: " x" }), { name: "InvalidBody", field: "id" });
  await assert.rejects(publish({ task_id: "я".repeat(200) }), { name: "InvalidBody", field: "task_id" });
  await assert.rejects(publish({ metadata: { a: ["\0"] } }), { name: "InvalidBody", field: "metadata" });
  const nested = (levels) => ({ metadata: JSON.parse('{"a":'.repeat(levels - 1) + "1" + "}".repeat(levels - 1)) });
  await assert.rejects(publish(nested(201)), { name: "InvalidBody", field: "metadata", problem: /limit is 200 levels/ });
  await publish({ ...nested(200), wait: true });
  await assert.rejects(publish({ id: "a\nb" }), { name: "InvalidBody", field: "id" });
  for (const number of [NaN, Infinity, -Infinity]) {
    const isNamed = (field) => ({ name: "InvalidBody", field, problem: /finite number/ });
    await assert.rejects(publish({ metadata: { a: [number] } }), isNamed("metadata"));
    await assert.rejects(memory.search("u", "tea", { threshold: number }), isNamed("threshold"));
    await assert.rejects(memory.history("u", { limit: number }), isNamed("limit"));
    await assert.rejects(memory.setProfile("u", { age: number }), isNamed("fields"));
    assert.match((await memory.context("u", { budget: number })).error.message, /^budget: /);
  }
  const circular = {};
  circular.itself = circular;
  const unreadable = { toJSON: () => assert.fail("no JSON") };
  for (const value of [7n, circular, unreadable]) {
    const isNamed = (field) => ({ name: "InvalidBody", field, problem: /^cannot be written as JSON \(.*\); give/ });
    await assert.rejects(publish({ metadata: { a: value } }), isNamed("metadata"));
    await assert.rejects(memory.setProfile("u", { a: value }), isNamed("fields"));
    assert.equal((await memory.context("u", { query: value })).error.field, "query");
  }
  await assert.rejects(publish({ metadata: ["a", "b"] }), { name: "InvalidBody", field: "metadata" });
  for (const fields of [["a", "b"], undefined, null]) {
    await assert.rejects(memory.setProfile("u", fields), { name: "InvalidBody", field: "fields" });
  }
  for (const request of [undefined, null, "pf_001", ["pf_001"]]) {
    await assert.rejects(memory.forget("u", request), { name: "InvalidBody", field: "body", problem: /an object/ });
  }
  for (const verb of ["remember", "constructor", undefined]) {
    await assert.rejects(memory.ask("u", verb, {}), { name: "InvalidBody", field: "verb", problem: /is not a verb/ });
  }
  for (const seq of [0, undefined, null]) {
    await assert.rejects(memory.outcome("u", seq), { name: "InvalidBody", field: "seq", problem: /1 or higher/ });
  }
  await assert.rejects(publish({ tool_calls: [{ nam: "x" }] }), { name: "InvalidBody", field: "tool_calls.0.name" });
  await assert.rejects(memory.publish("u", "nobody", "hi"), { name: "InvalidBody", field: "role" });
  await assert.rejects(memory.publish("u", "user"), { name: "InvalidBody", field: "content" });
  await assert.rejects(memory.publish("u", "user", "x".repeat(2 ** 20)), { name: "InvalidBody", field: "body" });
  await assert.rejects(memory.search("u", "tea", { limit: 0 }), { name: "InvalidBody", field: "limit" });
  await assert.rejects(memory.save("u", "Likes tea", { importance: "huge" }), InvalidBody);
  const { code, field } = (await memory.context("u", { budget: 0 })).error;
  assert.deepEqual([code, field], ["bad_request", "budget"]);
  assert.deepEqual((await memory.context("", {})).degraded, ["memory"]);
});

testEach("line breaks in other ids arrive as they are", async (memory) => {
  const user = newUser();
  const conversation = "a\r\nX-Other: b\n";
  const seq = await memory.publish(user, "user", "Here.", { conversation, task_id: conversation });
  const { messages } = await memory.history(user, { conversation, min_seq: seq });
  assert.deepEqual([messages.length, messages[0].content], [1, "Here."]);
  const { document_id } = await memory.addDocument(user, "The train leaves at 21:40.", { document_id: conversation });
  assert.equal(document_id, conversation);
  await assert.rejects(memory.get(user, "pf_\n1"), { name: "AskFailed", code: "not_found" });
});

testEach("refusals of the memory are typed", async (memory, transport) => {
  const user = newUser();
  assert.equal((await memory.save(user, "What is my name?")).rule, "question");
  await assert.rejects(memory.get(user, "pf_001"), AskFailed);
  await assert.rejects(memory.search(user, "tea", { as_of: 1 }), { name: "AskFailed", code: "not_found" });
  assert.equal((await memory.context(user, { as_of: 1 })).error.code, "not_found");
  // The schema permits a leap second. Over NATS only a consumer reads the body, and a slow one is asked again.
  const leapSecond = { id: "m1", sent_at: "2016-12-31T23:59:60Z", wait: true };
  let failure;
  do failure = await memory.publish(user, "user", "hi", leapSecond).catch((error) => error);
  while (failure.code === "timeout");
  assert.ok(failure instanceof (transport === "nats" ? EventRejected : InvalidBody), failure);
  assert.match(failure.problem, /second value/);
});

testEach("a publish that waits goes on after a request without a reply", async (_, transport) => {
  const hasty = await TRANSPORTS[transport].connect(undefined, { ...PATIENT, ask: 1, save: 1 });
  let failure;
  do failure = await hasty.publish(newUser(), "user", "hi", { wait: true }).catch((error) => error);
  while (!(failure instanceof Error)); // a reply may come within 1 ms
  await hasty.close();
  assert.match(failure.message, /event \d+ is stored, but not known to be applied/);
});

testEach("requests that are under way end before the client closes", async (memory) => {
  const user = newUser();
  const publishing = Array.from({ length: 50 }, (_, number) => memory.publish(user, "user", `Message ${number}`));
  await memory.close();
  const positions = await Promise.all(publishing);
  assert.equal(new Set(positions).size, 50);
  const closed = { code: "unavailable", retryable: false, message: /the client was closed/ };
  await assert.rejects(memory.publish(user, "user", "Too late"), { name: "PublishFailed", ...closed });
  await assert.rejects(memory.history(user), { name: "AskFailed", ...closed });
  for (const { degraded, error } of [await memory.context(user), await memory.search(user, "tea")]) {
    assert.deepEqual([degraded, error.code, error.retryable], [["memory"], "unavailable", false]);
  }
});

for (const [transport, { url, connect }] of Object.entries(TRANSPORTS)) {
  const withProxy = (name, check) =>
    test(`${transport}: ${name}`, async () => {
      const proxy = new LossyProxy(url);
      await proxy.start();
      try {
        await check(proxy, new URL(url).protocol.slice(0, -1));
      } finally {
        await proxy.stop().catch(() => {});
      }
    });

  withProxy("an event whose acknowledgements are lost is stored once", async (proxy, scheme) => {
    const user = newUser();
    const memory = await connect(proxy.url(scheme), { ...PATIENT, publish: 1_000 });
    proxy.loseAcknowledgements(2);
    const seq = await memory.publish(user, "user", "Once.");
    assert.equal(proxy.lost, 2);
    const direct = await connect();
    assert.deepEqual(said(await direct.history(user, { min_seq: seq })), [["user", "Once."]]);
    await Promise.all([memory.close(), direct.close()]);
  });

  withProxy("an event that is published while the server is away is stored once it is back", async (proxy, scheme) => {
    const user = newUser();
    const memory = await connect(proxy.url(scheme), { ...PATIENT, publish: 1_000 });
    await proxy.stop();
    const publishing = memory.publish(user, "user", "While it was away.");
    const failed = await connect(proxy.url(scheme), { ...PATIENT, publish: 200 }).then(
      (other) => other.context(user).finally(() => other.close()),
      (error) => error,
    );
    assert.ok(failed instanceof NotConnected || failed.error.code === "unavailable");
    await proxy.start(proxy.port);
    const seq = await publishing;
    assert.deepEqual(said(await memory.history(user, { min_seq: seq })), [["user", "While it was away."]]);
    await memory.close();
  });

  withProxy("a publish makes no further attempt once its client closes", async (proxy, scheme) => {
    const memory = await connect(proxy.url(scheme), { publish: 200, retry: 600_000 });
    await proxy.stop();
    const publishing = memory.publish("u", "user", "hi", { id: "m1" }).catch((error) => error);
    await memory.close();
    const { name, eventId, retryable, message } = await publishing;
    assert.deepEqual([name, eventId, retryable], ["PublishFailed", "m1", false]);
    assert.match(message, /the client was closed/);
  });

  withProxy("a bot continues while the memory is away", async (proxy, scheme) => {
    const memory = await connect(proxy.url(scheme), { publish: 200, retry: 400, ask: 200, save: 200 });
    await proxy.stop();
    const context = await memory.context("u", { query: "tea" });
    assert.deepEqual([context.degraded, context.messages, context.error.retryable], [["memory"], [], true]);
    const found = await memory.search("u", "tea");
    assert.deepEqual([found.degraded, found.hits, found.error.retryable], [["memory"], [], true]);
    const failure = await memory.publish("u", "user", "hi", { id: "m1" }).catch((error) => error);
    assert.ok(failure instanceof PublishFailed);
    assert.deepEqual([failure.eventId, failure.retryable], ["m1", true]);
    await assert.rejects(
      memory.save("u", "Likes tea with milk"),
      (error) => error instanceof AskFailed && error.retryable,
    );
    await memory.close();
  });
}

test("http: a wrong key is refused", async () => {
  const memory = connectHttp(MNEMON_GATEWAY_URL, { key: `mnemon_${"x".repeat(40)}`, timeouts: PATIENT });
  await assert.rejects(memory.publish("u", "user", "hi"), {
    name: "PublishFailed",
    code: "unauthorized",
    retryable: false,
  });
  await assert.rejects(memory.search("u", "tea"), { name: "AskFailed", code: "unauthorized", retryable: false });
  assert.equal((await memory.context("u")).error.code, "unauthorized");
});

test("http: a key that no header can have is refused, and not shown", () => {
  for (const key of [undefined, "", "mnemon_s3cret\nx", "mnemon_s3cret é"]) {
    assert.throws(
      () => connectHttp(MNEMON_GATEWAY_URL, { key }),
      (error) => error instanceof InvalidId && error.field === "key" && !String(error.stack).includes("s3cret"),
    );
  }
});

test("http: a key from a file with a line break at its end is accepted", async () => {
  const memory = connectHttp(MNEMON_GATEWAY_URL, { key: `${MNEMON_KEY}\n`, timeouts: PATIENT });
  assert.equal((await memory.context(newUser())).error, undefined);
});

/** Serves HTTP while `use` runs; the answers are those of a gateway: status, headers, problem details. */
async function withAnswers(answers, use) {
  const requests = [];
  const server = createServer((request, response) => {
    const [status, headers, body] = answers[Math.min(requests.length, answers.length - 1)];
    requests.push({ at: Date.now(), key: request.headers["idempotency-key"] });
    response.writeHead(status, { "Content-Type": "application/problem+json", ...headers }).end(JSON.stringify(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  try {
    const memory = connectHttp(`http://127.0.0.1:${server.address().port}`, { key: "k", timeouts: PATIENT });
    await use(memory, requests);
  } finally {
    server.close();
  }
}

test("http: errors have the seconds of Retry-After", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.UTC(2026, 0, 1) });
  const busy = { code: "too_many_requests", detail: "too many requests", retryable: true };
  for (const [written, isRight] of [
    ["7", (seconds) => seconds === 7],
    ["Thu, 01 Jan 2026 00:01:00 GMT", (seconds) => seconds === 60],
    ["Thu, 01 Jan 1970 00:00:00 GMT", (seconds) => seconds === 0],
    ["soon", (seconds) => seconds === undefined],
  ]) {
    await withAnswers([[429, { "Retry-After": written }, busy]], async (memory) => {
      const failure = await memory.save("u", "Likes tea").catch((error) => error);
      assert.ok(failure instanceof AskFailed && isRight(failure.retryAfter), `${written}: ${failure.retryAfter}`);
      assert.ok(isRight((await memory.context("u")).error.retryAfter));
    });
  }
  await withAnswers([[503, { "Retry-After": "4" }, "busy"]], async (memory) => {
    await assert.rejects(memory.read("u"), { code: "unavailable", retryable: true, retryAfter: 4 });
  });
  const refused = { code: "unauthorized", detail: "the key is wrong", retryable: false };
  await withAnswers([[401, {}, refused]], async (memory) => {
    await assert.rejects(memory.publish("u", "user", "hi"), { code: "unauthorized", retryAfter: undefined });
  });
});

test("http: a publish waits as long as Retry-After says, and keeps its id", async () => {
  const busy = { code: "too_many_requests", detail: "too many requests", retryable: true };
  const answers = [
    [429, { "Retry-After": "1" }, busy],
    [201, {}, { seq: 5, count: 1, duplicates: 0 }],
  ];
  await withAnswers(answers, async (memory, requests) => {
    assert.equal(await memory.publish("u", "user", "hi"), 5);
    assert.ok(requests[1].at - requests[0].at >= 990, "timers may be a few milliseconds early");
    assert.equal(requests[0].key, requests[1].key);
  });
  await withAnswers([[429, { "Retry-After": "600" }, busy]], async (memory, requests) => {
    await assert.rejects(memory.publish("u", "user", "hi"), { name: "PublishFailed", retryAfter: 600 });
    assert.equal(requests.length, 1, "it would be too late");
  });
});

test("http: many events that wait for their next attempt cause no warning", async () => {
  const warnings = [];
  const take = ({ name }) => warnings.push(name);
  process.on("warning", take);
  const busy = { code: "too_many_requests", detail: "too many requests", retryable: true };
  const answers = [...Array(20).fill([429, {}, busy]), [201, {}, { seq: 5, count: 1, duplicates: 0 }]];
  await withAnswers(answers, async (memory) => {
    await Promise.all(Array.from({ length: 20 }, () => memory.publish("u", "user", "hi")));
  });
  process.off("warning", take);
  assert.deepEqual(warnings, []);
});

test("http: an event that the gateway refuses names the field once", async () => {
  const refused = { code: "bad_request", detail: "metadata: is too deep", retryable: false, field: "metadata" };
  await withAnswers([[422, {}, refused]], async (memory) => {
    await assert.rejects(memory.publish("u", "user", "hi"), {
      name: "InvalidBody",
      field: "metadata",
      problem: "is too deep",
      message: "metadata: is too deep",
    });
  });
});

test("http: a tenant that has moved is told where to", async () => {
  const moved = { code: "moved", detail: "the tenant has moved", retryable: false, moved_to: "nats://there:4222" };
  await withAnswers([[409, {}, moved]], async (memory) => {
    const failure = await memory.read("u").catch((error) => error);
    assert.ok(failure instanceof TenantMoved);
    assert.equal(failure.movedTo, "nats://there:4222");
    assert.equal((await memory.context("u")).error.moved_to, "nats://there:4222");
  });
});

test("http: a refused request names the invalid field", async () => {
  const refused = { code: "refused", detail: "text: says the same", retryable: false, field: "text" };
  await withAnswers([[409, {}, refused]], async (memory) => {
    const failure = await memory.update("u", { id: "ar_001", text: "Likes tea" }).catch((error) => error);
    assert.ok(failure instanceof AskFailed);
    assert.equal(failure.error.field, "text");
  });
});

test("http: a server that is no gateway is reported as such", async () => {
  const memory = connectHttp(`${MNEMON_GATEWAY_URL}/elsewhere/`, { key: "k", timeouts: PATIENT });
  await assert.rejects(memory.read("u"), { name: "AskFailed", code: "not_found", retryable: false });
});

test("nats: a server that is away and a wrong login are not connected, and no password is shown", async () => {
  for (const password of ["s3cret", "a@s3cret", "s3cret,a"]) {
    const away = connectNats(`nats://bot:${password}@127.0.0.1:1`, { tenant: "acme" });
    await assert.rejects(away, (error) => error instanceof NotConnected && !error.message.includes("s3cret"));
  }
  await assert.rejects(connectNats(MNEMON_NATS_URL, { tenant: "" }), InvalidId);
});

test("nats: without an address there is no client", async () => {
  for (const [url, type] of [[undefined, "undefined"], [null, "null"], [4222, "number"]]) {
    const expected = { name: "NotConnected", message: new RegExp(`^url: must be a string, not ${type}\\. Give one`) };
    await assert.rejects(connectNats(url, { tenant: "acme" }), expected);
  }
  for (const url of ["", " , "]) {
    const expected = { name: "NotConnected", message: /no address .*Give one, such as nats:/ };
    await assert.rejects(connectNats(url, { tenant: "acme" }), expected);
  }
});

const LOGIN = process.env.MNEMON_GUARDED_NATS_URL;
test("nats: a login reaches its own tenant only", { skip: LOGIN ? false : "no server with logins" }, async () => {
  const timeouts = { publish: 5_000, retry: 500, ask: 5_000 };
  await assert.rejects(connectNats(LOGIN.replace(/:[^:@]*@/, ":wrong@"), { tenant: "A" }), NotConnected);
  const own = await connectNats(LOGIN, { tenant: "A", timeouts });
  assert.ok((await own.publish("u", "user", "hi")) > 0);
  assert.equal((await own.context("u")).error.code, "unavailable", "no process answers there");
  const other = await connectNats(LOGIN, { tenant: "B", timeouts, connection: { inboxPrefix: "_INBOX_A" } });
  await assert.rejects(other.publish("u", "user", "hi"), { name: "PublishFailed", code: "refused", retryable: false });
  const mistaken = await connectNats(LOGIN, { tenant: "B", timeouts });
  await assert.rejects(mistaken.history("u"), { code: "refused", message: /; connect with the tenant of this login, or / });
  await Promise.all([own.close(), other.close(), mistaken.close()]);
});
