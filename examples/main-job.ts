/**
 * The main job on real servers (`npm start`): two stdio servers and one over HTTP, 200
 * calls from 20 callers at once, the gates filling, an endpoint that is broken on
 * purpose, the health snapshot, and an orderly end. Exits 0 only when every step held.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CircuitOpen, ConnectFailed, createRuntime, HttpEndpoint, StdioEndpoint } from "../src/mod.ts";
import { startEverythingHttp } from "./support/everything-http.ts";
import { nodeBinary, script } from "./support/servers.ts";

const CALLS = 200;
const CALLERS = 20;
const terminal = process.stderr.isTTY === true;

const step = (text: string): void => console.log(`\n• ${text}`);
const check = (held: boolean, what: string): void => {
  if (!held) throw new Error(`this step did not hold: ${what}`);
  console.log(`  ok: ${what}`);
};
const progress = (text: string): void => {
  if (terminal) process.stderr.write(`\r\x1b[2K  ${text}`);
};

/** Live descendants of this process, by the process table where there is one. */
const childrenAlive = (pids: ReadonlyArray<number>): number =>
  pids.filter((pid) => {
    try {
      process.kill(pid, 0);
      return true;
    } catch {
      return false;
    }
  }).length;

const folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-"));
const pids: Array<number> = [];
try {
  await writeFile(join(folder, "hello.txt"), "hello from a real file\n");
  await using remote = await startEverythingHttp();
  await using runtime = await createRuntime();

  step("Attach two stdio servers and one over Streamable HTTP");
  const everything = { name: "everything", command: nodeBinary, args: [script("server-everything"), "stdio"] };
  await runtime.attach("everything", new StdioEndpoint(everything));
  await runtime.attach(
    "files",
    new StdioEndpoint({ name: "files", command: nodeBinary, args: [script("server-filesystem"), folder] }),
  );
  await runtime.attach("remote", new HttpEndpoint({ name: "remote", url: remote.url }));
  const tools = await runtime.tools();
  for (const handle of ["everything", "files", "remote"]) {
    const own = tools.filter((tool) => tool.handle === handle).map((tool) => tool.tool);
    check(own.length > 0, `${handle} lists ${own.length} tools: ${own.slice(0, 4).join(", ")}, …`);
  }

  step(`${CALLS} calls from ${CALLERS} callers at once`);
  const calls = Array.from({ length: CALLS }, (_, i) =>
    i % 10 === 9
      ? {
          tool: "files__read_text_file",
          arguments: { path: join(folder, "hello.txt") },
          expected: "hello from a real file",
        }
      : {
          tool: i % 3 === 0 ? "remote__echo" : "everything__echo",
          arguments: { message: `call ${i}` },
          expected: `call ${i}`,
        },
  );
  const fullest = new Map<string, { used: number; waiting: number; capacity: number }>();
  let done = 0;
  let right = 0;
  const queue = [...calls];
  const caller = async (): Promise<void> => {
    for (let call = queue.shift(); call !== undefined; call = queue.shift()) {
      const running = runtime.callTool(call);
      const { gates } = await runtime.health();
      for (const { name, used, capacity, waiting } of gates) {
        const before = fullest.get(name) ?? { used: 0, waiting: 0 };
        fullest.set(name, { capacity, used: Math.max(used, before.used), waiting: Math.max(waiting, before.waiting) });
      }
      const result = await running;
      if (result.textContent.includes(call.expected)) right++;
      progress(`${++done}/${CALLS} calls`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
  progress("");
  check(right === CALLS, `${right} of ${CALLS} answers are the right ones`);
  for (const [gate, { used, capacity, waiting }] of fullest) {
    console.log(`  gate ${gate} at its fullest: ${used}/${capacity} used, ${waiting} waiting`);
  }
  check((fullest.get("mcp:everything")?.used ?? 0) > 1, "the gate of 'everything' filled");

  step("Break an endpoint on purpose");
  await runtime.attach(
    "broken",
    new StdioEndpoint({ name: "broken", command: nodeBinary, args: ["-e", "process.exit(3)"] }),
  );
  const broken = new StdioEndpoint({ name: "broken", command: nodeBinary, args: ["-e", "process.exit(3)"] });
  const first = await runtime.client(broken).catch((error: unknown) => error);
  check(
    first instanceof ConnectFailed && first.exitCode === 3,
    `it fails with ConnectFailed: ${String((first as Error).message)}`,
  );
  const startedAt = performance.now();
  const second = await runtime.client(broken).catch((error: unknown) => error);
  const took = performance.now() - startedAt;
  check(
    second instanceof CircuitOpen,
    `the next use fails fast (${took.toFixed(1)} ms): ${String((second as Error).message).split(".")[0]}`,
  );
  const neighbour = await runtime.callTool({ tool: "everything__echo", arguments: { message: "still here" } });
  check(neighbour.textContent.includes("still here"), "its neighbours are untouched");

  step("Health");
  const health = await runtime.health();
  for (const { server, transport, state, pid, calls: sent, failures, users } of health.endpoints) {
    const process = pid === undefined ? "" : `, pid ${pid}`;
    console.log(`  ${server} (${transport}): ${state}${process}, ${sent} calls, ${failures} failures, ${users} users`);
    if (pid !== undefined) pids.push(pid);
  }
  for (const { name, capacity, used, waiting } of health.gates) {
    console.log(`  gate ${name}: ${used}/${capacity} used, ${waiting} waiting`);
  }

  step("Close");
  await runtime.close();
  check(childrenAlive(pids) === 0, `none of the ${pids.length} server processes is alive`);
  console.log("\nEvery step held.");
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await rm(folder, { recursive: true, force: true });
}
