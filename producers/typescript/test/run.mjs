// Runs the tests. Without MNEMON_NATS_URL, it starts `mnemon up` and the model server of the benches for them.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const root = new URL("../../../", import.meta.url).pathname;
const started = [];
const folder = await mkdtemp(join(tmpdir(), "mnemon-typescript-"));

/** Starts a program; returns the first line of its output that matches. */
async function start(arguments_, pattern) {
  const program = spawn("uv", ["run", ...arguments_], { cwd: root, stdio: ["ignore", "pipe", "inherit"] });
  started.push(program);
  for await (const line of createInterface({ input: program.stdout })) {
    const found = pattern.exec(line);
    if (found) return found;
  }
  throw new Error(`${arguments_.join(" ")} ended`);
}

async function startStack() {
  await chmod(folder, 0o755); // PostgreSQL runs as an account of its own
  const data = join(folder, "data");
  await start(["mnemon", "up", "--data", data], /Press Ctrl-C/);
  const endpoints = JSON.parse(await readFile(join(data, "endpoints.json"), "utf-8"));
  const [, model] = await start(["python", "-m", "mnemon_bench.provider_server"], /ready: (\S+)/);
  return {
    MNEMON_NATS_URL: endpoints.nats,
    MNEMON_GATEWAY_URL: endpoints.gateway,
    MNEMON_KEY: (await readFile(join(data, "gateway", "key"), "utf-8")).trim(),
    MNEMON_TENANT: "default",
    MNEMON_MODEL_URL: `${model}/v1`,
  };
}

try {
  const environment = { ...process.env, ...(process.env.MNEMON_NATS_URL ? {} : await startStack()) };
  const files = (await readdir(import.meta.dirname)).filter((name) => name.endsWith(".test.mjs"));
  const command = ["--test", "--test-concurrency=5", "--test-reporter=spec", ...files.map((name) => join(import.meta.dirname, name))];
  const tests = spawn(process.execPath, command, { env: environment, stdio: "inherit" });
  [process.exitCode] = await once(tests, "exit");
} finally {
  for (const program of started) program.kill("SIGTERM");
  await Promise.all(started.map((program) => program.exitCode ?? once(program, "exit")));
  await rm(folder, { recursive: true, force: true });
}
