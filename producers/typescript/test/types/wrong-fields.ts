// Code that must not compile. `package.test.mjs` compiles this file, and a copy without the expectations.
import { connectHttp, type MessageV1, type Replies } from "mnemon";
import { connectNats } from "mnemon/nats";
import { memoryMiddleware } from "mnemon/ai-sdk";

const memory = connectHttp("http://127.0.0.1:8080", { key: "k" });

// @ts-expect-error: the field is `sent_at`
await memory.publish("u42", "user", "hi", { sentAt: new Date() });
// @ts-expect-error: no such role
await memory.publish("u42", "bot", "hi");
// @ts-expect-error: the content is a text
await memory.publish("u42", "user", 7);
// @ts-expect-error: the field is `min_seq`
await memory.context("u42", { query: "tea", minSeq: 7 });
// @ts-expect-error: no such format
await memory.context("u42", { format: "html" });
// @ts-expect-error: no such scope
await memory.search("u42", "tea", { scope: ["everything"] });
// @ts-expect-error: the limit is a number
await memory.search("u42", "tea", { limit: "5" });
// @ts-expect-error: no such importance
await memory.save("u42", "Likes tea", { importance: "huge" });
// @ts-expect-error: no such verb
await memory.ask("u42", "remember", {});
// @ts-expect-error: a request needs its required fields
await memory.ask("u42", "save", {});
// @ts-expect-error: no such field in the reply
(await memory.history("u42")).hits;
// @ts-expect-error: a client needs a key
connectHttp("http://127.0.0.1:8080", {});
// @ts-expect-error: NATS needs a tenant
await connectNats("nats://127.0.0.1:4222", {});
// @ts-expect-error: the middleware needs a user
memoryMiddleware(memory, { conversation: "c" });
// @ts-expect-error: a message needs its content
export const message: MessageV1 = { role: "user" };
// @ts-expect-error: no such decision
export const decision: Replies["save"]["decision"] = "kept";
