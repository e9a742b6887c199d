/** Client of mnemon over HTTP, with errors, types and prompts. `mnemon/nats` has the client over NATS. */

export { MemoryClient, type ConversationOption, type DegradableReply, type Timeouts } from "./client.js";
export type * from "./contracts.js";
export * from "./errors.js";
export { connectHttp, type HttpOptions } from "./http.js";
export * from "./messages.js";
