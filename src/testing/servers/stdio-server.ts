/** The scripted server: reads its program from its argument, see `stdio-program.ts`. Uses no SDK. */
import { spawn } from "node:child_process";
import { appendFileSync, closeSync, readFileSync, writeSync } from "node:fs";
import type { Drip, Grandchild, Json, LogLine, StdioProgram, Step } from "./stdio-program.ts";

interface Message {
  readonly id?: Json;
  readonly method?: string;
  readonly params?: { readonly [key: string]: any };
}

const argument = process.argv[2] ?? "{}";
const program = JSON.parse(
  argument.startsWith("@") ? readFileSync(argument.slice(1), "utf8") : argument,
) as StdioProgram;

const log = (line: LogLine): void => {
  if (program.log) appendFileSync(program.log, `${JSON.stringify(line)}\n`);
};

// ── Writing ─────────────────────────────────────────────────────────────────

let stdoutClosed = false;
process.stdout.on("error", () => {
  stdoutClosed = true;
});

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => (ms > 0 ? setTimeout(resolve, ms) : setImmediate(resolve)));

const write = async (data: string | Buffer, drip?: Drip): Promise<void> => {
  if (stdoutClosed) return;
  if (!drip) {
    process.stdout.write(data);
    return;
  }
  const bytes = Buffer.from(data as string);
  for (let at = 0; at < bytes.length; at += drip.size) {
    process.stdout.write(bytes.subarray(at, at + drip.size));
    await sleep(drip.delay ?? 0);
  }
};

/** Settles when all that was written to stdout has left. */
const flushed = (): Promise<void> =>
  new Promise((resolve) => (stdoutClosed ? resolve() : process.stdout.write("", () => resolve())));

const frame = (value: Json): string => `${JSON.stringify(value)}\n`;

/** A synchronous write to stderr that waits for a full pipe to be drained. */
const writeError = (bytes: Buffer): void => {
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(2, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
};

const floodError = (count: number, newline: boolean): void => {
  const block = Buffer.from((newline ? `${"e".repeat(79)}\n` : "e".repeat(80)).repeat(200));
  for (let left = count; left > 0; left -= block.length) writeError(block.subarray(0, Math.min(left, block.length)));
};

// ── Default answers ─────────────────────────────────────────────────────────

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const text = (value: string): Json => ({ content: [{ type: "text", text: value }] });

const page = (key: string, items: ReadonlyArray<Json>, cursor: unknown): Json => {
  const size = program.pageSize ?? Math.max(items.length, 1);
  const from = cursor === undefined ? 0 : Number(Buffer.from(String(cursor), "base64url").toString().split(":")[1]);
  if (!Number.isInteger(from) || from < 0 || from > items.length) throw new Refusal(-32602, "Invalid cursor");
  const next = from + size;
  return {
    [key]: items.slice(from, next),
    ...(next < items.length ? { nextCursor: Buffer.from(`${key}:${next}`).toString("base64url") } : {}),
  };
};

const tools = program.tools ?? [
  { name: "echo", description: "Answers its arguments.", inputSchema: { type: "object" } },
];
const capabilities = program.capabilities ?? {
  tools: { listChanged: true },
  ...(program.resources || program.resourceTemplates ? { resources: { listChanged: true, subscribe: true } } : {}),
  ...(program.prompts ? { prompts: { listChanged: true } } : {}),
};

const defaults: Record<string, (params: Readonly<Record<string, any>>) => Json> = {
  initialize: (params) => ({
    protocolVersion: program.protocolVersion ?? params["protocolVersion"],
    capabilities,
    serverInfo: program.serverInfo ?? { name: "scripted", version: "1.0.0" },
    ...(program.instructions === undefined ? {} : { instructions: program.instructions }),
  }),
  ping: () => ({}),
  "tools/list": (params) => page("tools", tools, params["cursor"]),
  "tools/call": (params) => text(JSON.stringify(params["arguments"] ?? {})),
  "resources/list": (params) => page("resources", program.resources ?? [], params["cursor"]),
  "resources/templates/list": (params) => page("resourceTemplates", program.resourceTemplates ?? [], params["cursor"]),
  "resources/read": (params) => ({ contents: [{ uri: params["uri"], text: String(params["uri"]) }] }),
  "resources/subscribe": () => ({}),
  "resources/unsubscribe": () => ({}),
  "prompts/list": (params) => page("prompts", program.prompts ?? [], params["cursor"]),
  "prompts/get": (params) => ({
    messages: [{ role: "user", content: { type: "text", text: JSON.stringify(params) } }],
  }),
  "completion/complete": () => ({ completion: { values: [] } }),
  "logging/setLevel": () => ({}),
};

const answerByDefault = (message: Message): void => {
  const make = defaults[message.method ?? ""];
  try {
    if (!make) throw new Refusal(-32601, `Method not found: ${message.method}`);
    void write(frame({ jsonrpc: "2.0", id: message.id, result: make(message.params ?? {}) }));
  } catch (error) {
    const { code, message: reason } = error as Refusal;
    void write(frame({ jsonrpc: "2.0", id: message.id, error: { code, message: reason } }));
  }
};

// ── Steps ───────────────────────────────────────────────────────────────────

const latches = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>();
const latch = (key: string): { readonly opened: Promise<void>; readonly open: () => void } => {
  let found = latches.get(key);
  if (!found) {
    let open!: () => void;
    const opened = new Promise<void>((resolve) => (open = resolve));
    found = { opened, open };
    latches.set(key, found);
  }
  return found;
};

/** Puts the request's own values in place of `$id`, `$token` and `$params`. */
const fill = (value: Json, message: Message): Json => {
  if (value === "$id") return message.id;
  if (value === "$token") return message.params?.["_meta"]?.progressToken;
  if (value === "$params") return message.params;
  if (Array.isArray(value)) return value.map((item) => fill(item, message));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, message)]));
};

const leaveBehind = (grandchild: Grandchild): void => {
  const code = `${grandchild.ignoreSigterm ? 'process.on("SIGTERM",()=>{});' : ""}setInterval(()=>{},1000)`;
  const child = spawn(process.execPath, ["-e", code], {
    stdio: grandchild.holdsPipes === false ? "ignore" : "inherit",
  });
  child.unref();
  if (grandchild.pidFile) appendFileSync(grandchild.pidFile, `${child.pid}\n`);
};

const about = (): string =>
  JSON.stringify({ pid: process.pid, ppid: process.ppid, cwd: process.cwd(), argv: process.argv, env: process.env });

/** Runs one step; answers true when the request needs no default answer any more. */
const run = async (step: Step, message: Message): Promise<boolean> => {
  const reply = (body: object, id: Json = message.id, drip?: Drip): Promise<void> =>
    write(frame({ jsonrpc: "2.0", id, ...body }), drip);
  if ("reply" in step) await reply({ result: fill(step.reply, message) }, step.id, step.drip);
  else if ("error" in step) await reply({ error: fill(step.error, message) }, step.id);
  else if ("echo" in step) await reply({ result: text(JSON.stringify(message.params?.["arguments"] ?? {})) });
  else if ("big" in step) await reply({ result: text((step.char ?? "x").repeat(step.big)) }, message.id, step.drip);
  else if ("about" in step) await reply({ result: text(about()) });
  else if (!("never" in step)) {
    await act(step, message);
    return false;
  }
  return true;
};

type Answering = Extract<Step, { reply: Json } | { error: Json } | { echo: true } | { big: number } | { about: true }>;

const act = async (step: Exclude<Step, Answering | { never: true }>, message: Message): Promise<void> => {
  if ("message" in step) return write(frame(fill(step.message, message)));
  if ("raw" in step) return write(step.raw.replaceAll("$id", () => JSON.stringify(message.id) ?? ""));
  if ("bytes" in step) return write(Buffer.from(step.bytes, "base64"), step.drip);
  if ("notify" in step) return write(frame({ jsonrpc: "2.0", ...(fill(step.notify, message) as object) }));
  if ("request" in step) return write(frame({ jsonrpc: "2.0", ...(fill(step.request, message) as object) }));
  if ("delay" in step) return sleep(step.delay);
  if ("hold" in step) return latch(step.hold).opened;
  if ("release" in step) return latch(step.release).open();
  if ("stderr" in step) return writeError(Buffer.from(step.stderr));
  if ("stderrFlood" in step) return floodError(step.stderrFlood.bytes, step.stderrFlood.newline !== false);
  if ("grandchild" in step) return leaveBehind(step.grandchild);
  if ("exit" in step) {
    await flushed();
    process.exit(step.exit);
  }
  if ("stdoutFlood" in step) {
    const around = (part = ""): string => part.replaceAll("$id", () => JSON.stringify(message.id) ?? "");
    return write(`${around(step.head)}${"e".repeat(step.stdoutFlood)}${around(step.tail)}\n`);
  }
  await flushed();
  if ("closeStdout" in step) {
    stdoutClosed = true;
    return closeSync(1);
  }
  process.kill(process.pid, step.kill);
  // The signal is delivered on a later turn; nothing more is to happen before.
  await sleep(1000);
};

const taken = new Map<string, number>();
const stepsFor = (method: string): ReadonlyArray<Step> | undefined => {
  const given = program.on?.[method];
  if (!given || !Array.isArray(given[0])) return given as ReadonlyArray<Step> | undefined;
  const count = taken.get(method) ?? 0;
  taken.set(method, count + 1);
  return given[Math.min(count, given.length - 1)] as ReadonlyArray<Step>;
};

const runAll = async (steps: ReadonlyArray<Step>, message: Message): Promise<boolean> => {
  let answered = false;
  for (const step of steps) answered = (await run(step, message)) || answered;
  return answered;
};

const receive = (message: Message): void => {
  log({ kind: "message", pid: process.pid, message });
  if (message.method === undefined) return;
  const steps = stepsFor(message.method);
  const isRequest = message.id !== undefined;
  if (!steps) {
    if (isRequest) answerByDefault(message);
    return;
  }
  void runAll(steps, message).then((answered) => {
    if (isRequest && !answered) answerByDefault(message);
  });
};

// ── Life ────────────────────────────────────────────────────────────────────

if (program.pidFile) appendFileSync(program.pidFile, `${process.pid}\n`);
log({ kind: "start", pid: process.pid });

if (program.ignoreSigterm || program.log) {
  process.on("SIGTERM", () => {
    log({ kind: "signal", pid: process.pid, signal: "SIGTERM" });
    if (!program.ignoreSigterm) process.exit(143);
  });
}

const start = (): void => {
  const parts: Array<string> = [];
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (chunk: string) => {
    const lines = chunk.split("\n");
    const last = lines.pop()!;
    for (const line of lines) receive(JSON.parse(parts.splice(0).join("") + line) as Message);
    parts.push(last);
  });
  process.stdin.on("end", () => {
    log({ kind: "stdin-end", pid: process.pid });
    if (!program.ignoreStdinEnd) process.exit(0);
  });
  if (program.ignoreStdinEnd) setInterval(() => {}, 1000);
};

if (program.onStart) void runAll(program.onStart, {}).then(start);
else start();
