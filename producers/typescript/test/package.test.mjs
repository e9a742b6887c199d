import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFile, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const PACKAGE = join(import.meta.dirname, "..");
const run = promisify(execFile);
const compile = (project) => run("node_modules/.bin/tsc", ["--project", project], { cwd: PACKAGE });

/** Makes a folder for the duration of `use`. */
async function withFolder(parent, use) {
  const folder = await mkdtemp(join(parent, "mnemon-test-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test("the types are those of the contracts", async () => {
  await run("node", ["generate.mjs", "--check"], { cwd: PACKAGE });
});

test("right fields compile, and each wrong field does not", async () => {
  await compile("test");
  await withFolder(join(PACKAGE, "test"), async (folder) => {
    const source = await readFile(join(PACKAGE, "test", "types", "wrong-fields.ts"), "utf-8");
    const expectations = /^\/\/ @ts-expect-error.*$/gm;
    await writeFile(join(folder, "wrong-fields.ts"), source.replace(expectations, ""));
    await writeFile(join(folder, "tsconfig.json"), '{ "extends": "../tsconfig.json", "include": ["."] }');
    const { stdout } = await compile(folder).catch((error) => error);
    const lines = new Set([...stdout.matchAll(/wrong-fields\.ts\((\d+),/g)].map(([, line]) => line));
    assert.equal(lines.size, source.match(expectations).length, stdout);
  });
});

test("the packed package installs in an empty folder, without what only its development needs", async () => {
  await withFolder(tmpdir(), async (folder) => {
    const { stdout } = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", folder], {
      cwd: PACKAGE,
    });
    const [{ filename, files }] = Object.values(JSON.parse(stdout));
    assert.deepEqual(
      files
        .map(({ path }) => path)
        .filter((path) => !/^(dist\/[\w-]+\.(d\.ts|js)|package\.json|README\.md)$/.test(path)),
      [],
    );
    await writeFile(join(folder, "package.json"), '{ "private": true, "type": "module" }');
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", `./${filename}`], { cwd: folder });
    const installed = (await readdir(join(folder, "node_modules"))).filter((name) => !name.startsWith("."));
    assert.deepEqual(installed.sort(), ["@cfworker", "@nats-io", "mnemon", "tweetnacl"]);
    await copyFile(join(import.meta.dirname, "empty-folder.mjs"), join(folder, "bot.mjs"));
    const used = await run("node", ["bot.mjs"], { cwd: folder });
    assert.equal(used.stdout, "NotConnected memory\n");
    // A browser has no package for NATS.
    await rm(join(folder, "node_modules", "@nats-io"), { recursive: true });
    const script = 'import "mnemon/ai-sdk"; import * as mnemon from "mnemon"; console.log(typeof mnemon.connectHttp)';
    const browser = await run("node", ["--input-type=module", "--eval", script], { cwd: folder });
    assert.equal(browser.stdout, "function\n");
  });
});
