import assert from "node:assert/strict";
import { test } from "node:test";

import { toAnthropicPrompt, toOpenAIMessages, toVercelPrompt } from "mnemon";

import { newUser, testEach } from "./support.mjs";

const context = (...messages) => ({
  messages: messages.map(([role, content, name]) => ({ role, content, ...(name && { name }) })),
});
const FULL = context(
  ["system", "Key facts:\n- Likes tea"],
  ["system", "Currently:\n- In Porto"],
  ["assistant", "Hello."],
  ["user", "[2026-11-22 04:52] I live in Porto", "Anna"],
  ["system", "Tool result: 21:40"],
  ["assistant", "Noted."],
  ["user", "[2026-11-22 04:53] When is my train?", "Anna"],
  ["system", "Relevant memory:\n- Prefers night trains"],
);
const EMPTY = context();

test("OpenAI gets the messages in their order", () => {
  assert.deepEqual(toOpenAIMessages(FULL), FULL.messages);
  assert.deepEqual(toOpenAIMessages(FULL, "When is my train?"), FULL.messages);
  assert.deepEqual(toOpenAIMessages(FULL, "And the bus?").at(-1), { role: "user", content: "And the bus?" });
  assert.deepEqual(toOpenAIMessages(EMPTY, "Hi"), [{ role: "user", content: "Hi" }]);
  assert.deepEqual(toOpenAIMessages(context(["tool", "21:40"])), [{ role: "system", content: "21:40" }]);
});

test("a question is added after an unanswered message that ends with its words", () => {
  const unanswered = context(["user", "[2026-11-22 04:52] Oh yes"]);
  assert.deepEqual(toOpenAIMessages(unanswered, "yes").at(-1), { role: "user", content: "yes" });
  assert.deepEqual(toOpenAIMessages(unanswered, "Oh yes"), unanswered.messages);
});

test("Anthropic gets a system prompt, and what was found with the user's last message", () => {
  for (const toPrompt of [toAnthropicPrompt, toVercelPrompt]) {
    assert.deepEqual(toPrompt(FULL, "When is my train?"), {
      system: "Key facts:\n- Likes tea\n\nCurrently:\n- In Porto",
      messages: [
        { role: "user", content: "…" },
        { role: "assistant", content: "Hello." },
        { role: "user", content: "[2026-11-22 04:52] I live in Porto" },
        { role: "assistant", content: "Noted." },
        {
          role: "user",
          content:
            "Tool result: 21:40\n\nRelevant memory:\n- Prefers night trains\n\n[2026-11-22 04:53] When is my train?",
        },
      ],
    });
    assert.deepEqual(toPrompt(EMPTY, "Hi"), { messages: [{ role: "user", content: "Hi" }] });
    assert.deepEqual(toPrompt(context(["system", "Facts"]), "Hi"), {
      system: "Facts",
      messages: [{ role: "user", content: "Hi" }],
    });
  }
});

testEach("the parts that change seldom stay in front from turn to turn", async (memory) => {
  const user = newUser();
  await memory.save(user, "Prefers night trains to planes", { importance: "high" });
  const prompts = [];
  for (const question of ["How do I get to Porto?", "And to Lisbon?"]) {
    const min_seq = await memory.publish(user, "user", question);
    const reply = await memory.context(user, { query: question, min_seq });
    prompts.push({ openai: toOpenAIMessages(reply, question), anthropic: toAnthropicPrompt(reply, question) });
  }
  const [before, after] = prompts;
  assert.deepEqual(after.openai.slice(0, 2), before.openai.slice(0, 2));
  assert.match(before.openai[0].content, /night trains/);
  assert.equal(after.anthropic.system, before.anthropic.system);
  assert.deepEqual(
    after.anthropic.messages.map(({ role }) => role),
    ["user", "user"],
  );
});
