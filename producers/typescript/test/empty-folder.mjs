// A bot without a server, in a folder with the packed package only.
import { connectHttp } from "mnemon";
import { memoryMiddleware } from "mnemon/ai-sdk";
import { connectNats } from "mnemon/nats";

const refused = await connectNats("nats://127.0.0.1:1", { tenant: "acme" }).catch((error) => error);
const memory = connectHttp("http://127.0.0.1:1", { key: "none" });
memoryMiddleware(memory, { user: "u42" });
const { degraded } = await memory.context("u42");
console.log(refused.name, ...degraded);
