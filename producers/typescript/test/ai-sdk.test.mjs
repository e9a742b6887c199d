import assert from "node:assert/strict";
import { test } from "node:test";

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, streamText, tool, wrapLanguageModel } from "ai";
import { memoryMiddleware } from "mnemon/ai-sdk";

import { LossyProxy, MNEMON_MODEL_URL, PATIENT, TRANSPORTS, newUser, testEach } from "./support.mjs";

const said = (reply) => reply.messages.map(({ role, content }) => [role, content]);

/** A model with the memory of a user on the local model server, and the messages that the server received. */
function openModel(memory, options, answer = fetch) {
  const received = [];
  const send = async (url, init) => {
    received.push(JSON.parse(init.body).messages);
    return answer(url, init);
  };
  const provider = createOpenAICompatible({ name: "local", baseURL: MNEMON_MODEL_URL, fetch: send });
  const middleware = memoryMiddleware(memory, options);
  return { model: wrapLanguageModel({ model: provider("a-model"), middleware }), received };
}

async function generate(model, prompt) {
  return (await generateText({ model, ...prompt })).text;
}

async function stream(model, prompt) {
  let text = "";
  for await (const part of streamText({ model, ...prompt }).textStream) text += part;
  return text;
}

for (const ask of [generate, stream]) {
  testEach(`${ask.name}: a second conversation remembers the first`, async (memory) => {
    const user = newUser();
    await memory.save(user, "Speaks Portuguese at home", { importance: "high" });
    const first = openModel(memory, { user });
    const answer = await ask(first.model, { system: "Be brief.", prompt: "My cello is in <Porto>" });
    assert.match(first.received[0][0].content, /^Be brief\.\n\n<memory>[^]*Speaks Portuguese/);
    assert.match(first.received[0].at(-1).content, /My cello is in <Porto>$/);
    const second = openModel(memory, { user });
    await ask(second.model, { prompt: "Where is it?" });
    assert.match(second.received[0].at(-1).content, /^<memory>[^]*My cello is in &lt;Porto&gt;[^]*Where is it\?$/);
    const seq = await memory.publish(user, "user", "(end)");
    const history = said(await memory.history(user, { min_seq: seq }));
    assert.deepEqual(history.slice(0, 3), [
      ["user", "My cello is in <Porto>"],
      ["assistant", answer],
      ["user", "Where is it?"],
    ]);
    assert.equal(history.length, 5);
  });
}

testEach("messages that the prompt has are not repeated", async (memory) => {
  const user = newUser();
  const { model, received } = openModel(memory, { user });
  const messages = [{ role: "user", content: " I play the cello\nand the\u2028viola & <more> \n" }];
  messages.push(
    { role: "assistant", content: await generate(model, { messages }) },
    { role: "user", content: "What do I play?" },
  );
  await generate(model, { messages });
  const sent = received[1].map(({ content }) => content).join("\n");
  assert.equal(sent.match(/the cello/g).length, 1);
  assert.equal(sent.match(/What do I play/g).length, 1);
});

for (const ask of [generate, stream]) {
  testEach(`${ask.name}: the same history sent again stores each message once`, async (memory) => {
    const user = newUser();
    const options = { user, conversation: "one" };
    const question = { role: "user", content: "What do I play?" };
    const again = (text) => ({ role: "assistant", content: text });
    const answers = ["The cello.", "The cello.", "The viola.", "Yes.", "Yes.", "Yes."];
    const answer = async (_, init) => answerWith(answers.shift(), init);
    // A web server makes a middleware for each request.
    const send = (...messages) => ask(openModel(memory, options, answer).model, { messages });
    await send(question);
    await send(question);
    const kept = await send(question);
    assert.equal(kept, "The viola.");
    await send(question, again(kept), question);
    await send(question, again(` ${kept}\n`), question);
    await send(question, again(kept), question, again("Yes."), question);
    const seq = await memory.publish(user, "user", "(end)", { conversation: "one" });
    assert.deepEqual(said(await memory.history(user, { conversation: "one", min_seq: seq })), [
      ["user", "What do I play?"],
      ["assistant", "The cello."],
      ["assistant", "The viola."],
      ["user", "What do I play?"],
      ["assistant", "Yes."],
      ["user", "What do I play?"],
      ["assistant", "Yes."],
      ["user", "(end)"],
    ]);
  });
}

testEach("all messages of the user at the end of a prompt are stored", async (memory) => {
  const user = newUser();
  const { model } = openModel(memory, { user });
  const messages = ["Hello.", "My cello is old", "My flute is new"].map((content) => ({ role: "user", content }));
  messages[0].role = "assistant";
  const answer = await generate(model, { messages });
  const seq = await memory.publish(user, "user", "(end)");
  assert.deepEqual(said(await memory.history(user, { min_seq: seq })), [
    ["user", "My cello is old"],
    ["user", "My flute is new"],
    ["assistant", answer],
    ["user", "(end)"],
  ]);
});

testEach("the same words in another conversation, or with another picture, are another message", async (memory) => {
  const user = newUser();
  const show = (image) => {
    const content = [
      { type: "text", text: "What is it?" },
      { type: "image", image, mediaType: "image/png" },
    ];
    return [{ role: "user", content }];
  };
  for (const conversation of ["one", "two"]) {
    for (const picture of [Uint8Array.of(1, 2, 3), Uint8Array.of(1, 2, 4)]) {
      for (let time = 0; time < 2; time += 1) {
        const { model } = openModel(memory, { user, conversation }, async (_, init) => answerWith("A cello.", init));
        await generate(model, { messages: show(picture) });
      }
    }
    const seq = await memory.publish(user, "user", "(end)", { conversation });
    const history = said(await memory.history(user, { conversation, min_seq: seq }));
    assert.equal(history.filter(([, content]) => content === "What is it?").length, 2);
  }
});

/** Returns the response of a model that gives an answer, streamed if the request asks for a stream. */
function answerWith(text, { body }) {
  if (!JSON.parse(body).stream) return Response.json(completion({ content: text }));
  const write = (delta, finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    return `data: ${JSON.stringify({ ...completion({}), object: "chat.completion.chunk", choices })}\n\n`;
  };
  const parts = [...text].map((content) => write({ content }));
  return new Response([...parts, write({}, "stop"), "data: [DONE]\n\n"].join(""), {
    headers: { "Content-Type": "text/event-stream" },
  });
}

testEach("a repeated call and the steps of tools store the user's message once", async (memory) => {
  const user = newUser();
  const replies = [
    () => new Response("{}", { status: 500 }),
    () =>
      Response.json(
        completion({ tool_calls: [{ id: "t1", type: "function", function: { name: "find", arguments: "{}" } }] }),
      ),
    () => Response.json(completion({ content: "Found." })),
  ];
  const { model, received } = openModel(memory, { user, conversation: "one" }, async () => replies.shift()());
  const find = tool({ inputSchema: jsonSchema({ type: "object", properties: {} }), execute: async () => "cello" });
  const { text } = await generateText({ model, prompt: "Find it", tools: { find }, stopWhen: stepCountIs(3) });
  assert.equal(text, "Found.");
  assert.deepEqual(
    received.map((messages) => messages.at(-1).role),
    ["user", "user", "tool"],
  );
  const seq = await memory.publish(user, "user", "(end)", { conversation: "one" });
  const { messages } = await memory.history(user, { conversation: "one", min_seq: seq });
  assert.deepEqual(
    messages.map(({ content }) => content),
    ["Find it", "Found.", "(end)"],
  );
});

const completion = (message) => ({
  id: "1",
  object: "chat.completion",
  created: 1,
  model: "m",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: null, ...message },
      finish_reason: message.tool_calls ? "tool_calls" : "stop",
    },
  ],
});

test("the model answers while the memory is away", async () => {
  const { url, connect } = TRANSPORTS.http;
  const proxy = new LossyProxy(url);
  await proxy.start();
  const memory = await connect(proxy.url("http"), { ...PATIENT, publish: 200, retry: 200, ask: 200 });
  await proxy.stop();
  const errors = [];
  const { model, received } = openModel(memory, { user: "u", onError: (error) => errors.push(error) });
  assert.match(await generate(model, { prompt: "Where is my cello?" }), /cello/);
  assert.deepEqual(received[0], [{ role: "user", content: "Where is my cello?" }]);
  assert.deepEqual(
    errors.map(({ code }) => code),
    ["unavailable", "unavailable"],
  );
});
