import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { secretVariable } from "../../src/cli/client-secret.ts";
import { openLoopbackReceiver } from "../../src/cli/loopback-receiver.ts";
import type { TextStream } from "../../src/cli/output.ts";
import { run } from "../../src/cli/run.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { type OAuthScript, type OAuthWorld, startOAuth } from "../../src/testing/servers/oauth.ts";
import { startScriptedHttp } from "../../src/testing/servers/http.ts";
import { type Outcome, start, within } from "./run-command.ts";

let folder = "";
const at = (name: string): string => join(folder, name);
const tokens = (): string => at("state/nucleo-mcp/tokens");
const kept = (): Promise<ReadonlyArray<string>> => readdir(tokens()).catch(() => []);

const before = { XDG_STATE_HOME: process.env["XDG_STATE_HOME"], LOCALAPPDATA: process.env["LOCALAPPDATA"] };
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-auth-"));
  delete process.env["LOCALAPPDATA"];
  process.env["XDG_STATE_HOME"] = at("state");
});
beforeEach(() => rm(at("state"), { recursive: true, force: true }));
afterAll(async () => {
  for (const [name, value] of Object.entries(before)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await rm(folder, { recursive: true });
});

const configure = async (servers: Readonly<Record<string, unknown>>): Promise<string> => {
  const path = at("mcp.json");
  await writeFile(path, JSON.stringify({ mcpServers: servers }));
  return path;
};

/** A protected server as `docs` in the configuration. */
const protectedServer = async (script: OAuthScript = {}): Promise<OAuthWorld> => {
  const world = await startOAuth(script);
  await configure({ docs: { url: world.url }, local: { command: "no-such-command" } });
  return world;
};

const refreshable: OAuthScript["token"] = ({ form }, world) => ({
  expires_in: 3600,
  scope: "files mail",
  refresh_token: `refresh-${world.tokenRequests.length}-of-${form["grant_type"]}`,
});

/** `auth login docs --no-browser`, and a person who opens the page that stderr shows. */
const login = async (...words: ReadonlyArray<string>): Promise<Outcome> => {
  const written = { stdout: "", stderr: "" };
  let visit: Promise<unknown> | undefined;
  const stream = (name: keyof typeof written): TextStream => ({
    write: (text, done) => {
      written[name] += text;
      const page = /^http\S+$/m.exec(written.stderr)?.[0];
      if (page !== undefined) visit ??= fetch(page).then((response) => response.text());
      done?.();
    },
  });
  const all = ["auth", "login", "docs", "--no-browser", "-c", at("mcp.json"), ...words];
  const streams = { stdout: stream("stdout"), stderr: stream("stderr") };
  const code = await Effect.runPromise(run({ words: all, version: "0.0.0", ...streams, environment: {} }));
  await visit;
  return { code, ...written };
};

const command = (...words: ReadonlyArray<string>): Promise<Outcome> => within(...words, "-c", at("mcp.json"));
const json = (text: string): any => JSON.parse(text);

describe("auth login", () => {
  it("shows the page, keeps the login, and the other commands use it", async () => {
    await using world = await protectedServer({ token: refreshable });
    const { code, stdout, stderr } = await login();
    expect([code, stdout]).toEqual([0, "Logged in to 'docs'.\n"]);
    expect(stderr).toContain(`${world.issuer}/authorize?`);
    expect(await kept()).toHaveLength(1);

    const tools = await command("tools", "docs");
    expect([tools.code, tools.stderr]).toEqual([0, ""]);
    expect(tools.stdout).toContain("docs (2 tools)");
    const called = await command("call", "docs", "echo", "a=1");
    expect([called.code, json(called.stdout)]).toEqual([0, { a: "1" }]);
    expect((await command("doctor")).stdout).toContain("ok   docs [tools]");
    expect(json((await command("health", "--json")).stdout).endpoints).toContainEqual(
      expect.objectContaining({ state: "ready", transport: "http" }),
    );
    expect([world.logins.length, world.tokenRequests.length]).toEqual([1, 1]);
  });

  it("asks again for a login that is kept already, and the new one takes its place", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    const [name] = await kept();
    const first = await readFile(join(tokens(), name!), "utf8");
    expect((await login()).code).toBe(0);
    expect(world.logins).toHaveLength(2);
    expect(await kept()).toEqual([name]);
    expect(await readFile(join(tokens(), name!), "utf8")).not.toBe(first);
  });

  it.skipIf(process.platform !== "linux")("opens the platform's browser", async () => {
    await using world = await protectedServer({ token: refreshable });
    const script = "fetch(process.argv[1]).then((page) => page.text())";
    await writeFile(at("xdg-open"), `#!/bin/sh\nexec '${nodeBinary}' -e '${script}' "$1"\n`);
    await chmod(at("xdg-open"), 0o755);
    const env = { PATH: `${folder}:${process.env["PATH"]}` };
    const { code, stdout } = await start(["auth", "login", "docs", "--json", "-c", at("mcp.json")], { env }).outcome;
    expect(code).toBe(0);
    expect(json(stdout)).toMatchObject({ server: "docs", state: "logged-in", resource: world.url });
    expect(world.logins).toHaveLength(1);
  });

  it.skipIf(process.platform === "win32")("without a browser to open, a person opens the page", async () => {
    await using _world = await protectedServer();
    const { PATH } = process.env;
    process.env["PATH"] = at("nowhere");
    try {
      const { code, stderr } = await command("auth", "login", "docs", "--timeout", "200ms");
      expect(stderr).toContain("No browser could be opened");
      expect(code).toBe(4);
    } finally {
      process.env["PATH"] = PATH;
    }
  });

  it("a refused login is exit code 4; what was kept stays", async () => {
    let refuse = false;
    await using world = await protectedServer({
      token: refreshable,
      redirect: () => (refuse ? { error: "access_denied", code: undefined } : {}),
    });
    await login();
    refuse = true;
    const { code, stdout, stderr } = await login();
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("access_denied");
    expect(stderr).not.toContain("nucleo-mcp auth login");
    expect(world.logins).toHaveLength(2);
    expect(json((await command("auth", "status", "docs", "--json")).stdout).logins[0].state).toBe("logged-in");
  });

  it("--timeout bounds the wait for the person", async () => {
    await using _world = await protectedServer();
    const words = ["auth", "login", "docs", "--no-browser", "--timeout", "200ms", "--json"];
    const { code, stdout } = await command(...words);
    expect([code, json(stdout).error.tag]).toEqual([4, "Unauthorized"]);
    expect(json(stdout).error.detail).toContain("nobody came back from the browser within 200ms");
  });

  it("--client-id, --scope and --port: a client registered beforehand logs in, and the other commands refresh it", async () => {
    await using world = await protectedServer({ token: refreshable });
    const receiver = await openLoopbackReceiver();
    const { port } = new URL(receiver.redirectUri);
    await receiver.close();
    process.env[secretVariable] = "s3cret";
    const { code, stdout, stderr } = await login("--client-id", "mine", "--scope", "mail files", "--port", port);
    delete process.env[secretVariable];
    expect([code, stdout]).toEqual([0, "Logged in to 'docs'.\n"]);
    expect(Object.fromEntries(world.logins[0]!)).toMatchObject({
      client_id: "mine",
      scope: "mail files",
      redirect_uri: `http://127.0.0.1:${port}/callback`,
    });
    expect(world.registrations).toEqual([]);
    world.accepted.clear();
    const tools = await command("tools", "docs");
    expect([tools.code, tools.stderr]).toEqual([0, ""]);
    expect(world.tokenRequests.map(({ form }) => form["grant_type"])).toEqual(["authorization_code", "refresh_token"]);
    const basic = `Basic ${Buffer.from("mine:s3cret").toString("base64")}`;
    for (const { authorization } of world.tokenRequests) expect(authorization).toBe(basic);
    expect(stdout + stderr + tools.stdout).not.toContain("s3cret");
    // A login of the same person by another client takes its place.
    expect((await login()).code).toBe(0);
    expect(await kept()).toHaveLength(1);
    expect((await command("tools", "docs")).code).toBe(0);
    expect(world.registrations).toHaveLength(1);
  });

  it("--user keeps the logins of several people apart", async () => {
    await using world = await protectedServer({ token: refreshable });
    for (const user of ["bob", "ada"]) expect((await login("--user", user)).code).toBe(0);
    expect(await kept()).toHaveLength(2);
    const [bobs, adas] = world.accepted;
    expect((await command("tools", "docs", "--user", "bob")).stderr).toBe("");
    expect(world.passed.at(-1)).toBe(bobs);
    const either = await command("tools", "docs");
    expect(either.stderr).toMatch(
      /Logins of ada, bob are kept for 'docs'. The first one is used; --user names another/,
    );
    expect(world.passed.at(-1)).toBe(adas);
    const nobody = await command("tools", "docs", "--user", "eve");
    expect([nobody.code, nobody.stderr]).toEqual([4, expect.stringContaining("auth login docs")]);
    const status = await command("auth", "status", "docs", "--json");
    expect(json(status.stdout).logins.map(({ user }: { user: string }) => user)).toEqual(["ada", "bob"]);
    expect((await command("auth", "logout", "docs", "--user", "ada")).code).toBe(0);
    expect((await command("tools", "docs")).stderr).toBe("");
    expect(world.passed.at(-1)).toBe(bobs);
    expect((await command("auth", "logout", "docs")).code).toBe(0);
    expect(await kept()).toEqual([]);
  });

  it("bad input: a port that is taken, or is none, is exit code 2", async () => {
    await using world = await protectedServer();
    const taken = new URL(world.url).port;
    const { code, stderr } = await login("--port", taken);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/come back from the browser.*in use/i)]);
    for (const none of ["x", "1.5", "70000"]) expect((await login("--port", none)).code).toBe(2);
    expect(world.logins).toEqual([]);
  });

  it("a server that asks for none gets none", async () => {
    await using open = await startScriptedHttp(({ mcp }) => mcp());
    await configure({ docs: { url: open.url } });
    const { code, stdout } = await login();
    expect([code, stdout]).toEqual([0, "'docs' answers without a login, so there is none to keep.\n"]);
    expect(await kept()).toEqual([]);
  });

  it("a login that cannot be kept is an error", async () => {
    await using _world = await protectedServer();
    await writeFile(at("state"), "");
    const { code, stdout, stderr } = await login();
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toContain("tokenStore");
  });

  it.each([
    [["login", "local"], /no HTTP server/],
    [["login", "dcs"], /Did you mean docs\?/],
    [["login", "keyed"], /Authorization header/],
    [["login", "old"], /flavor 'sse'/],
    [["status", "local"], /no HTTP server/],
    [["logout", "nowhere"], /Servers: /],
    [["login"], /auth login --help/],
    [[], /auth --help/],
  ])("bad input: auth %j is exit code 2", async (words, message) => {
    await configure({
      docs: { url: "http://127.0.0.1:1/mcp" },
      local: { command: "no-such-command" },
      keyed: { url: "http://127.0.0.1:1/mcp", headers: { Authorization: "Bearer x" } },
      old: { url: "http://127.0.0.1:1/sse", type: "sse" },
    });
    const { code, stdout, stderr } = await command("auth", ...words);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });
});

describe("auth status", () => {
  it("tells what is kept, with no secret", async () => {
    await using world = await protectedServer({ token: refreshable });
    expect((await command("auth", "status")).stdout).toBe("docs: not logged in\n");
    expect((await command("auth", "status", "docs")).code).toBe(4);
    const loggedIn = await login("--json");

    const text = await command("auth", "status", "docs");
    expect(text.code).toBe(0);
    expect(text.stdout).toMatch(
      /^docs: logged in as user at http\S+, scope files mail, token until \S+Z, refreshable\n$/,
    );
    const document = await command("auth", "status", "--json");
    const [state] = json(document.stdout).logins;
    expect(state).toEqual({
      server: "docs",
      state: "logged-in",
      user: "user",
      resource: world.url,
      scope: "files mail",
      expiresAt: expect.any(String),
      refreshable: true,
    });
    expect(json(loggedIn.stdout)).toEqual(state);
    expect(Date.parse(state.expiresAt) - Date.now()).toBeGreaterThan(3_000_000);
    const [access] = world.accepted;
    const written = [loggedIn, text, document].map(({ stdout, stderr }) => stdout + stderr).join();
    for (const secret of [access!, "refresh-1-of-authorization_code"]) expect(written).not.toContain(secret);
  });

  it("shows logins of servers that left the configuration", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    await configure({ other: { url: "http://127.0.0.1:1/mcp" } });
    const { stdout } = await command("auth", "status", "--json");
    expect(json(stdout).logins).toEqual([
      { server: "other", state: "none" },
      expect.objectContaining({ state: "logged-in", resource: world.url }),
    ]);
  });
});

describe("without a person", () => {
  it("after a logout the error says how to log in, and no browser opens", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    const out = await command("auth", "logout", "docs", "--json");
    expect([out.code, json(out.stdout)]).toEqual([0, { server: "docs", removed: [world.url] }]);
    expect(await kept()).toEqual([]);
    expect((await command("auth", "logout", "docs")).stdout).toBe("Nobody was logged in to 'docs'.\n");
    const { code, stderr } = await command("tools", "docs");
    expect(stderr).toContain("to log in, run 'nucleo-mcp auth login docs'");
    expect(code).toBe(4);
    expect((await command("doctor")).stdout).toContain("run 'nucleo-mcp auth login docs'");
    expect(world.logins).toHaveLength(1);
  });

  it("a login that has ended and cannot be refreshed is such an error too", async () => {
    await using world = await protectedServer();
    await login();
    world.accepted.clear();
    const { code, stdout } = await command("call", "docs", "echo", "--json");
    expect([code, json(stdout).error]).toEqual([
      4,
      expect.objectContaining({ tag: "Unauthorized", detail: "its login has ended; run 'nucleo-mcp auth login docs'" }),
    ]);
    expect([world.logins.length, world.registrations.length]).toEqual([1, 1]);
  });

  it("a refreshed login is kept", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    world.accepted.clear();
    expect((await command("tools", "docs")).code).toBe(0);
    expect(world.tokenRequests.map(({ form }) => form["grant_type"])).toEqual(["authorization_code", "refresh_token"]);
    const [file] = await kept();
    expect(await readFile(join(tokens(), file!), "utf8")).toContain("refresh-2-of-refresh_token");
  });

  it("a configured Authorization header comes before a kept login", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    const own = world.mint();
    await configure({ docs: { url: world.url, headers: { Authorization: `Bearer ${own}` } } });
    expect((await command("tools", "docs")).code).toBe(0);
    expect(world.passed.at(-1)).toBe(own);
  });

  it("a store that cannot be read is a warning", async () => {
    await using open = await startScriptedHttp(({ mcp }) => mcp());
    await configure({ docs: { url: open.url } });
    await writeFile(at("state"), "");
    const { code, stdout, stderr } = await command("tools", "docs");
    expect([code, stdout]).toEqual([0, expect.stringContaining("docs (2 tools)")]);
    expect(stderr).toMatch(/^warning: Kept logins are not used\./);
  });

  it("a gateway serves the tools of a server that somebody has logged in to", async () => {
    await using world = await protectedServer({ token: refreshable });
    await login();
    const words = ["serve", "--http", "127.0.0.1:0", "--record", at("record"), "--until-idle", "15s"];
    const serving = command(...words);
    const deadline = Date.now() + 20_000;
    let record = "";
    while (record === "" && Date.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 20));
      record = await readFile(at("record"), "utf8").catch(() => "");
    }
    await writeFile(at("gateway.json"), JSON.stringify({ mcpServers: { all: { url: json(record).url } } }));
    // A client of 2026-07-28 leaves no word when it goes, so a gateway would count it for another minute.
    const env = { NUCLEO_MCP_ERA: "legacy" };
    const { code, stdout } = await start(["tools", "all", "-c", at("gateway.json")], { env }).outcome;
    expect([code, stdout]).toEqual([0, expect.stringContaining("docs__echo")]);
    expect((await serving).code).toBe(0);
    expect(world.logins).toHaveLength(1);
  });
});
