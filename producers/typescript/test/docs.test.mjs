import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";

import {
  LossyProxy,
  MNEMON_GATEWAY_URL,
  MNEMON_MODEL_URL,
  MNEMON_NATS_URL,
  MNEMON_TENANT,
  PATIENT,
  newUser,
} from "./support.mjs";

const PACKAGE = join(import.meta.dirname, "..");
const ROOT = join(PACKAGE, "..", "..");
const run = promisify(execFile);
const withoutTimes = (text) => text.replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d/g, "TIME");

const programs = ["docs/typescript.md", "README.md"].flatMap((page) => {
  const blocks = [...readFileSync(join(ROOT, page), "utf-8").matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  return blocks.flatMap(([, language, text], number) => {
    if (language !== "ts") return [];
    const next = blocks[number + 1];
    return [
      { page, name: `${page.replaceAll(/\W/g, "-")}-${number}`, text, shown: next?.[1] === "text" ? next[2] : "" },
    ];
  });
});

/** Lets a program wait for a slow machine, as the other tests do. */
const makePatient = (program) =>
  program.replaceAll(/(MNEMON_KEY!?|tenant: "acme") \}/g, `$1, timeouts: ${JSON.stringify(PATIENT)} }`);

/** A folder in the package, where the programs find what they import. */
let folder;
before(async () => {
  folder = await mkdtemp(join(PACKAGE, "test", "docs-"));
  for (const { name, text } of programs) {
    const program = makePatient(text)
      .replaceAll("nats://127.0.0.1:4222", MNEMON_NATS_URL)
      .replaceAll("http://127.0.0.1:8080", MNEMON_GATEWAY_URL)
      .replaceAll('"acme"', JSON.stringify(MNEMON_TENANT))
      .replaceAll('"u42"', JSON.stringify(newUser()));
    await writeFile(join(folder, `${name}.ts`), program);
  }
  const options = {
    extends: "../tsconfig.json",
    compilerOptions: { noEmit: false, rootDir: ".", outDir: "built" },
    include: ["."],
  };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(options));
});
after(() => rm(folder, { recursive: true, force: true }));

test("the programs of the pages compile, and print what the pages show", async (context) => {
  assert.equal(new Set(programs.map(({ page }) => page)).size, 2);
  await run("node_modules/.bin/tsc", ["--project", folder], { cwd: PACKAGE }).catch(({ stdout }) =>
    assert.fail(stdout),
  );
  for (const { name, shown } of programs) {
    await context.test(name, async () => {
      const { stdout } = await run("node", [join(folder, "built", `${name}.js`)]);
      assert.equal(withoutTimes(stdout).slice(0, withoutTimes(shown).length), withoutTimes(shown));
    });
  }
});

test("the example bot of the AI SDK remembers what was said before", async () => {
  const bot = readFileSync(join(ROOT, "docs", "examples", "ai_sdk_bot.mjs"), "utf-8");
  await writeFile(join(folder, "ai_sdk_bot.mjs"), makePatient(bot));
  const model = new LossyProxy(MNEMON_MODEL_URL);
  await model.start();
  const env = { ...process.env, MNEMON_MODEL: "a-model", MNEMON_MODEL_URL: `${model.url("http")}/v1` };
  const user = newUser();
  for (const said of ["My cello annoys Porto", "Which instrument was it?"]) {
    model.received = "";
    const talking = run("node", [join(folder, "ai_sdk_bot.mjs"), user], { env });
    talking.child.stdin.end(`${said}\n`);
    assert.match((await talking).stdout, /^They spoke of/);
  }
  assert.match(model.received, /My cello annoys Porto.*Which instrument was it\?/);
  await model.stop();
});
