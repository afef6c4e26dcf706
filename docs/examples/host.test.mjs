// A host in JavaScript, tested with a recorded extension: node --test host.test.mjs
import assert from "node:assert";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";

test("a greeting is understood", async () => {
  const child = spawn("ext-recorder", ["replay", "greeting.yaml"], {
    cwd: new URL(".", import.meta.url),
    stdio: ["pipe", "pipe", "inherit"],
  });
  const exited = once(child, "exit");
  const params = { operation: "greet", args: { name: "Ada" }, context: { workdir: ".", phase: "setup" } };
  child.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: "js-1", method: "execute", params }) + "\n");
  let answer;
  for await (const line of createInterface(child.stdout)) {
    answer = JSON.parse(line);
    if ("id" in answer) break; // a log has none
  }
  child.stdin.end();
  assert.equal(answer.id, "js-1");
  assert.equal(answer.result.message, "Hello, Ada!");
  assert.deepEqual(await exited, [0, null]); // exit code 3: something else was asked than is recorded
});
