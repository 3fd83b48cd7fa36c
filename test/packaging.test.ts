/**
 * The package as its users get it: built, packed, unpacked into an empty project beside
 * its declared dependencies, and used from there on the runtime that runs this suite.
 */
import { execFile } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { nodeBinary } from "./support/node-binary.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "nucleo-mcp-package-"));
const project = join(folder, "project");
const unpacked = join(project, "node_modules", "nucleo-mcp");
const readJson = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const manifest = readJson(join(root, "package.json"));
const entries: ReadonlyArray<string> = Object.keys(manifest.exports).filter((key) => key !== "./package.json");
/** Entries that only load beside an optional peer. */
const adapters = ["./ai-sdk", "./langchain"];
const specifier = (entry: string): string => entry.replace(/^\./, "nucleo-mcp");

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const run = (command: string, args: ReadonlyArray<string>, cwd: string): Promise<Run> =>
  new Promise((resolve) => {
    const PATH = [dirname(nodeBinary), process.env["PATH"]].join(delimiter);
    execFile(command, [...args], { cwd, env: { ...process.env, PATH }, timeout: 100_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });

const runsWell = async (command: string, args: ReadonlyArray<string>, cwd: string): Promise<string> => {
  const { code, stdout, stderr } = await run(command, args, cwd);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${code}:\n${stdout}\n${stderr}`);
  return stdout;
};

/** A script of the project, on the runtime that runs this suite. */
const script = (path: string, ...args: ReadonlyArray<string>): Promise<string> =>
  runsWell(process.execPath, [...("Deno" in globalThis ? ["run", "-A"] : []), path, ...args], project);

const tsc = (args: ReadonlyArray<string>, cwd: string): Promise<string> =>
  runsWell(nodeBinary, [join(root, "node_modules", "typescript", "bin", "tsc"), ...args], cwd);

const write = (name: string, text: string): void => writeFileSync(join(project, name), text);
const link = (name: string): void => {
  const target = join(project, "node_modules", name);
  mkdirSync(dirname(target), { recursive: true });
  if (!existsSync(target)) symlinkSync(join(root, "node_modules", name), target, "junction");
};

const links = (names: object): void => {
  for (const name of Object.keys(names)) link(name);
};

beforeAll(async () => {
  const copy = join(folder, "copy");
  mkdirSync(copy);
  for (const name of [
    "src",
    "docs",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
  ])
    cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"), "junction");
  await tsc(["-p", "tsconfig.build.json"], copy);
  await runsWell("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], copy);

  links(manifest.dependencies);
  await runsWell("tar", ["-xzf", join(folder, `nucleo-mcp-${manifest.version}.tgz`), "-C", folder], folder);
  cpSync(join(folder, "package"), unpacked, { recursive: true });
  chmodSync(join(unpacked, manifest.bin["nucleo-mcp"]), 0o755);
  const dependencies = { "nucleo-mcp": manifest.version, ...manifest.dependencies };
  write("package.json", JSON.stringify({ name: "project", type: "module", private: true, dependencies }));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("package", () => {
  it("holds what its manifest names, and no tests", () => {
    for (const entry of entries) {
      for (const path of Object.values<string>(manifest.exports[entry]))
        expect([entry, path, existsSync(join(unpacked, path))]).toEqual([entry, path, true]);
    }
    for (const name of ["README.md", "CHANGELOG.md", "LICENSE", manifest.bin["nucleo-mcp"]])
      expect([name, existsSync(join(unpacked, name))]).toEqual([name, true]);
    const links = readFileSync(join(unpacked, "README.md"), "utf8").matchAll(/\]\((?!https?:)([^)#\s]+)/g);
    for (const [, target] of links) expect([target, existsSync(join(unpacked, target!))]).toEqual([target, true]);
    for (const name of ["test", "examples", "bench", "node_modules"])
      expect([name, existsSync(join(unpacked, name))]).toEqual([name, false]);
  });

  it("names the same entries for npm and for Deno", () => {
    const deno = readJson(join(root, "deno.json"));
    expect(Object.keys(deno.exports)).toEqual(entries);
    for (const entry of entries)
      expect(manifest.exports[entry].default).toBe(deno.exports[entry].replace("/src/", "/dist/").replace(/ts$/, "js"));
    expect(deno.version).toBe(manifest.version);
  });

  it("makes a call from an empty project, by each of its entries", async () => {
    write(
      "call.mjs",
      `import { Server } from "@modelcontextprotocol/sdk/server/index.js";
       import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
       import { createRuntime, InMemoryEndpoint } from "nucleo-mcp";
       const loaded = await Promise.all(${JSON.stringify(entries.filter((e) => !adapters.includes(e)).map(specifier))}
         .map(async (name) => [name, Object.keys(await import(name)).length]));
       const connect = (transport) => {
         const server = new Server({ name: "embedded", version: "1" }, { capabilities: { tools: {} } });
         const inputSchema = { type: "object", properties: { n: { type: "number" } } };
         server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [{ name: "twice", inputSchema }] }));
         server.setRequestHandler(CallToolRequestSchema, ({ params }) =>
           ({ content: [{ type: "text", text: String(params.arguments.n * 2) }] }));
         return server.connect(transport);
       };
       const runtime = await createRuntime();
       await runtime.attach("math", new InMemoryEndpoint({ name: "embedded", connect }));
       const { textContent } = await runtime.callTool({ tool: "math__twice", arguments: { n: 21 } });
       const refused = await runtime.callTool({ tool: "math__twice", arguments: { n: "x" } }).catch((e) => e._tag);
       await runtime.close();
       console.log(JSON.stringify({ loaded, textContent, refused }));`,
    );
    const { loaded, textContent, refused } = JSON.parse(await script("call.mjs"));
    expect(loaded.filter(([, exported]: [string, number]) => exported === 0)).toEqual([]);
    expect({ textContent, refused }).toEqual({ textContent: "42", refused: "InvalidArguments" });
  });

  it("makes a call to a subprocess", async () => {
    const server = join(root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    write(
      "stdio.mjs",
      `import { createRuntime, StdioEndpoint } from "nucleo-mcp";
       const runtime = await createRuntime();
       const args = ${JSON.stringify([server, "stdio"])};
       await runtime.attach("demo", new StdioEndpoint({ name: "demo", command: ${JSON.stringify(nodeBinary)}, args }));
       const { textContent } = await runtime.callTool({ tool: "demo__echo", arguments: { message: "packed" } });
       await runtime.close();
       console.log(textContent);`,
    );
    expect((await script("stdio.mjs")).trim()).toBe("Echo: packed");
  });

  it("has a command that runs", async () => {
    const command = join(unpacked, manifest.bin["nucleo-mcp"]);
    expect(readFileSync(command, "utf8")).toMatch(/^#!\/usr\/bin\/env node\n/);
    const help = await script(command, "--help");
    for (const name of ["tools", "call", "health", "doctor"]) expect(help).toContain(name);
    expect(await script(command, "--version")).toContain(manifest.version);
    const shebang = await runsWell(command, ["--version"], project);
    expect(shebang).toContain(manifest.version);
  });

  it("has types for every entry", async () => {
    link("@types/node");
    write(
      "use.ts",
      `import * as Effect from "effect/Effect";
       import { type CallError, createRuntime, type McpRuntime, StdioEndpoint } from "nucleo-mcp";
       import { layer, McpRuntime as Service } from "nucleo-mcp/effect";
       import { container } from "nucleo-mcp/di";
       import { type McpTransport, ports, type TransportPlugin } from "nucleo-mcp/plugin";
       import { type ContractSuite, transportContract } from "nucleo-mcp/testing";
       import type { Gateway } from "nucleo-mcp/serve";
       export const runtime: Promise<McpRuntime> = createRuntime({ settings: { idleTimeout: "1 minute" } });
       export const endpoint = new StdioEndpoint({ name: "a", command: "b" });
       export const program = Effect.gen(function* () {
         const service = yield* Service;
         return yield* service.callTool({ tool: "a__b" });
       }).pipe(Effect.catchTag("CircuitOpen", (error) => Effect.succeed(error.retryAt)), Effect.provide(layer()));
       export const kind: string = container.resolve<TransportPlugin>(ports.transports.token).kind;
       export const send: McpTransport["send"] = async (message) => void message.jsonrpc;
       export const suite: (o: Parameters<typeof transportContract>[0]) => ContractSuite = transportContract;
       export type Everything = [CallError["_tag"], Gateway["listen"]];
       // @ts-expect-error -- a typing mistake in a setting's name
       void createRuntime({ settings: { idleTimeOut: 5 } });
       // @ts-expect-error -- a stdio endpoint without a command
       new StdioEndpoint({ name: "a" });`,
    );
    const compilerOptions = {
      target: "ES2022",
      lib: ["ES2023", "ESNext.Disposable", "DOM"],
      module: "NodeNext",
      strict: true,
      exactOptionalPropertyTypes: true,
      types: ["node"],
      skipLibCheck: true,
      noEmit: true,
    };
    write("tsconfig.json", JSON.stringify({ compilerOptions, files: ["use.ts"] }));
    await tsc(["-p", "."], project);
  });

  it("pulls no node: module by its imports", async () => {
    write(
      "hooks.mjs",
      `import { registerHooks, isBuiltin } from "node:module";
       const own = ${JSON.stringify(`${pathToFileURL(unpacked).href}/`)};
       globalThis.pulled = [];
       globalThis.own = new Set();
       registerHooks({
         resolve: (name, context, next) => {
           const { parentURL = "" } = context;
           if (parentURL.startsWith(own)) {
             globalThis.own.add(parentURL);
             if (isBuiltin(name)) globalThis.pulled.push(name + " by " + parentURL.slice(own.length));
           }
           return next(name, context);
         },
       });`,
    );
    // The servers of the testing kit are processes and sockets.
    const neutral = entries.filter((entry) => !adapters.includes(entry) && entry !== "./testing").map(specifier);
    write(
      "neutral.mjs",
      `for (const name of ${JSON.stringify(neutral)}) await import(name);
       console.log(JSON.stringify({ pulled: globalThis.pulled, files: globalThis.own.size }));`,
    );
    const printed = await runsWell(nodeBinary, ["--import", "./hooks.mjs", "neutral.mjs"], project);
    const { pulled, files } = JSON.parse(printed);
    expect(pulled).toEqual([]);
    expect(files).toBeGreaterThan(30);
  });

  it("needs its optional peers for their adapters alone", async () => {
    links(manifest.peerDependencies);
    const names = JSON.stringify(adapters.map(specifier));
    write("peers.mjs", `for (const name of ${names}) console.log(Object.keys(await import(name)).length);`);
    const exported = (await script("peers.mjs")).trim().split("\n").map(Number);
    expect(exported.length).toBe(adapters.length);
    for (const count of exported) expect(count).toBeGreaterThan(0);
  });
});
