/** Random fault programs for the scripted HTTP servers: mostly polite, with a few faults of any kind. */
import * as fc from "fast-check";
import type { EventFields, HttpProgram, HttpStep, OAuthScript } from "../../src/testing.ts";
import { asJson, bytes, drip, echoTool, form, handlingOf, oddIds, oddities, oneOf, wait } from "./program-parts.ts";

/** One HTTP world: the server, how the endpoint names it, and whether a login stands before it. */
export interface HttpFaultProgram {
  readonly server: HttpProgram;
  /** Default `auto`. */
  readonly flavor?: "streamable-http" | "sse";
  /** The endpoint has a credential, and the server wants a token of this authorization server. */
  readonly oauth?: Omit<OAuthScript, "program">;
}

type Steps = ReadonlyArray<HttpStep>;

/** Mostly undefined: `weight` in six cases the value. */
const rarely = <A>(value: fc.Arbitrary<A>, weight = 1): fc.Arbitrary<A | undefined> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: 6 - weight, arbitrary: fc.constant(undefined) },
    { weight, arbitrary: value },
  );

const texts: ReadonlyArray<string> = [
  "not json",
  "<!doctype html><title>Login</title>",
  "{}",
  "[]",
  "null",
  '{"jsonrpc":"2.0"}',
  '{"jsonrpc":"1.0","id":$id,"result":{}}',
  '{"jsonrpc":"2.0","id":$id}',
  '{"jsonrpc":"2.0","id":$id,"result":{"content":[]},"error":{"code":1,"message":"both"}}',
  '{"jsonrpc":"2.0","id":$id,"error":"text"}',
  '{"jsonrpc":"2.0","id":$id,"error":{"code":"text"}}',
  '{"jsonrpc":"2.0","method":5,"id":$id}',
  '{"jsonrpc":"2.0","id":[$id],"result":{}}',
  '{"jsonrpc":"2.0","id":"$id","result":{"content":[]}}',
  '{"jsonrpc":"2.0","id":$id,"res',
  '[{"jsonrpc":"2.0","id":$id,"result":{"content":[]}},5,null]',
];
const frames: ReadonlyArray<string> = [
  ": alive\n\n",
  "\n\n\n",
  "\r\n\r\n",
  "\uFEFF",
  "data\n\n",
  "data:\n\n",
  "event: message\n",
  "event: other\ndata: {}\n\n",
  'data: {"jsonrpc":"2.0",\r\ndata: "id":$id,"result":{"content":[]}}\r\n\r\n',
  'data: {"jsonrpc":"2.0","id":$id,"result":{"content":[]}}\r\r',
  'data: {"jsonrpc":"2.0","id":$id,"result":{"content":[]}}',
  "id: 1\u0000\n\n",
  "retry: soon\n\n",
  "retry: 99999999999\n\n",
  "retry: 0\n\n",
  ...texts.map((text) => `data: ${text}\n\n`),
];

const notifications: ReadonlyArray<{ readonly method: string; readonly params?: unknown }> = [
  { method: "notifications/unknown" },
  { method: "notifications/tools/list_changed" },
  { method: "notifications/progress", params: { progressToken: "$token", progress: 1 } },
  { method: "notifications/progress", params: { progressToken: "$token", progress: "text" } },
  { method: "notifications/progress" },
  { method: "notifications/message", params: { level: "info", data: "hello" } },
  { method: "notifications/message", params: 5 },
  { method: "notifications/cancelled", params: { requestId: "$id" } },
  { method: "notifications/cancelled" },
  { method: "" },
];
const requests: ReadonlyArray<{ readonly method: string; readonly params?: unknown }> = [
  { method: "ping" },
  { method: "unknown/method", params: { a: 1 } },
  {
    method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 5 },
  },
  { method: "sampling/createMessage", params: null },
  { method: "elicitation/create", params: form },
  { method: "roots/list" },
];
const request = fc
  .tuple(oneOf(requests), fc.constantFrom<unknown>("a", 1, 7, null))
  .map(([asked, id]) => ({ id, ...asked }));

const headers = fc.constantFrom<Record<string, string>>(
  {},
  { "retry-after": "0" },
  { "retry-after": "1" },
  { "retry-after": "99999" },
  { "retry-after": "soon" },
  { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" },
  { "www-authenticate": "Bearer" },
  { "www-authenticate": 'Bearer error="insufficient_scope", scope="a b"' },
  { "content-type": "application/json" },
  { "content-type": "text/event-stream" },
  { "content-type": "text/html" },
);
const bodies = fc.constantFrom(
  "",
  "busy",
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"Unsupported protocol version"}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"Header mismatch"}}',
  '{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"Unsupported protocol version"}}',
  '{"error":"text"}',
);
const statuses = fc.constantFrom(
  200,
  201,
  202,
  204,
  400,
  401,
  403,
  404,
  405,
  406,
  408,
  409,
  410,
  421,
  422,
  429,
  500,
  501,
  502,
  503,
  503,
  504,
);
const refusal: fc.Arbitrary<HttpStep> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ status: statuses }) },
  {
    weight: 3,
    // 204 has no body.
    arbitrary: fc.record({ status: statuses.filter((status) => status !== 204), body: bodies, headers }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      redirect: fc.constantFrom(
        "/mcp?again",
        "/mcp",
        "/elsewhere",
        "",
        "http://[",
        "http://127.0.0.1:1/mcp",
        "https://elsewhere.invalid/mcp",
        "file:///etc/passwd",
      ),
      status: fc.constantFrom(301, 302, 303, 307, 308),
    }),
  },
);

const head: fc.Arbitrary<HttpStep> = fc.record({
  head: fc.constantFrom<Record<string, string>>(
    {},
    { "content-type": "text/html" },
    { "content-type": "application/json" },
    { "content-type": "text/event-stream; charset=utf-8" },
    { "content-type": "text/event-stream", "mcp-session-id": "another" },
    { "content-type": "application/octet-stream" },
    { "content-type": "" },
    { "content-length": "10" },
    { "content-encoding": "gzip" },
  ),
});

/** Faults of the connection itself. */
const breakage: fc.Arbitrary<HttpStep> = fc.constantFrom<HttpStep>(
  { drop: true },
  { drop: true },
  { end: true },
  { cut: true },
  { forget: true },
  { restart: true },
);

const answer: fc.Arbitrary<HttpStep> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<HttpStep>({ echo: true }) },
  { weight: 2, arbitrary: fc.constant<HttpStep>({ never: true }) },
  { weight: 2, arbitrary: fc.record({ reply: oneOf(oddities) }) },
  { weight: 2, arbitrary: fc.record({ reply: fc.constant({ content: [] }), drip }) },
  { weight: 2, arbitrary: fc.record({ reply: fc.constant({ content: [] }), id: oneOf(oddIds) }) },
  {
    weight: 1,
    arbitrary: fc.record({ big: fc.constantFrom(5000, 100_000, 1_200_000), char: fc.constantFrom("x", "é") }),
  },
  { weight: 1, arbitrary: fc.record({ big: fc.constant(20_000), drip: fc.constant({ size: 4096 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      message: fc.constantFrom<unknown>([], [null], 5, [{ jsonrpc: "2.0", id: "$id", result: {} }]),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      error: fc.record({
        // Not the codes that say that a request was refused before it ran: those come with a status.
        code: fc.constantFrom(-32_601, -32_602, -32_603, -32_700, -32_000, 0, 401),
        message: fc.constant("no"),
      }),
    }),
  },
  { weight: 4, arbitrary: refusal },
);

const event: fc.Arbitrary<HttpStep> = fc.record({
  event: fc
    .record({
      id: rarely(fc.constantFrom("e-$id", "f-$id", "", "0"), 4),
      retry: rarely(fc.constantFrom(0, 1, 20, 400, 100_000), 3),
      event: rarely(fc.constantFrom("message", "other", "endpoint")),
      data: rarely(fc.constantFrom<unknown>("", { jsonrpc: "2.0", method: "notifications/unknown" }, "text"), 5),
    })
    .map((fields) => asJson(fields) as EventFields),
});

const flood: fc.Arbitrary<HttpStep> = fc.record({
  repeat: fc.constantFrom(3, 200, 1_000_000),
  steps: fc.constantFrom<Steps>(
    [{ raw: ": alive\n\n" }],
    [{ notify: { method: "notifications/message", params: { level: "info", data: "again" } } }],
    [{ notify: { method: "notifications/progress", params: { progressToken: "$token", progress: 1 } } }],
    [{ notify: { method: "notifications/tools/list_changed" } }],
    [{ raw: "x".repeat(1000) }],
  ),
  every: fc.constantFrom(0, 5, 40),
});

const disturbance: fc.Arbitrary<HttpStep> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ delay: wait }) },
  { weight: 2, arbitrary: fc.record({ raw: oneOf(texts) }) },
  { weight: 3, arbitrary: fc.record({ raw: oneOf(frames) }) },
  { weight: 1, arbitrary: fc.record({ bytes: oneOf(bytes) }) },
  { weight: 2, arbitrary: fc.record({ notify: oneOf(notifications) }) },
  { weight: 2, arbitrary: fc.record({ request }) },
  {
    weight: 1,
    arbitrary: fc.record({ push: oneOf([...oddities, { jsonrpc: "2.0", id: "$id", result: { content: [] } }]) }),
  },
  { weight: 3, arbitrary: event },
  { weight: 1, arbitrary: flood },
  { weight: 2, arbitrary: head },
  { weight: 1, arbitrary: fc.record({ headFlood: fc.constantFrom(2000, 100_000) }) },
  { weight: 3, arbitrary: breakage },
);

const handling: fc.Arbitrary<Steps> = handlingOf(disturbance, answer);
const polite: Steps = [];
const handlings: fc.Arbitrary<ReadonlyArray<Steps>> = fc.array(
  fc.oneof({ weight: 1, arbitrary: fc.constant(polite) }, { weight: 2, arbitrary: handling }),
  { minLength: 1, maxLength: 4 },
);
/** As `handlings`, and well in the end, so that the load reaches what comes after. */
const stumbles: fc.Arbitrary<ReadonlyArray<Steps>> = fc
  .array(handling, { minLength: 1, maxLength: 2 })
  .map((some) => [...some, polite]);

/** Streams that end after an event id, and are then resumed. */
const resumed: Steps = [{ event: { id: "e-$id", retry: 5, data: "" } }, { end: true }];
const dropped: Steps = [{ event: { id: "e-$id", retry: 5, data: "" } }, { delay: 5 }, { drop: true }];

const handshakes: fc.Arbitrary<Steps> = fc.oneof(
  oneOf(oddities).map((reply): Steps => [{ reply }]),
  fc.constantFrom<Steps>(
    [{ reply: { protocolVersion: 5, capabilities: {}, serverInfo: { name: "s", version: "1" } } }],
    [{ reply: { protocolVersion: "1999-01-01", capabilities: {}, serverInfo: { name: "s", version: "1" } } }],
    [{ reply: { protocolVersion: "2025-06-18", capabilities: "text", serverInfo: null } }],
    [{ reply: { protocolVersion: "2025-06-18", capabilities: { tools: 5 }, serverInfo: { name: 5 } } }],
    [{ head: { "mcp-session-id": "" } }],
    [{ default: true }, { delay: 10 }, { forget: true }],
    [{ default: true }, { delay: 10 }, { restart: true }],
    [{ delay: 100 }],
    [{ never: true }],
  ),
  handling,
);

const toolLists: ReadonlyArray<unknown> = [
  { tools: null },
  { tools: "text" },
  { tools: [null, 5, { name: 5 }, { name: "" }, echoTool] },
  { tools: [echoTool, echoTool, { ...echoTool, inputSchema: 5 }] },
  { tools: [echoTool], nextCursor: "again" },
  { tools: [echoTool], nextCursor: 5 },
  { tools: [echoTool], ttlMs: 0 },
  { tools: [{ ...echoTool, outputSchema: { type: "object", required: ["a"] } }] },
];

const methods = {
  initialize: rarely(fc.oneof(handshakes, stumbles)),
  "server/discover": rarely(fc.oneof(handling, stumbles)),
  "notifications/initialized": rarely(fc.oneof(handling, stumbles)),
  "notifications/cancelled": rarely(handling),
  ping: rarely(handlings, 2),
  "tools/list": rarely(
    fc.oneof(
      oneOf(toolLists).map((reply): Steps => [{ reply }]),
      handlings,
      stumbles,
    ),
    2,
  ),
  "tools/call": rarely(
    fc.oneof(
      { weight: 5, arbitrary: handlings },
      { weight: 1, arbitrary: fc.array(oneOf([resumed, dropped, polite]), { minLength: 1, maxLength: 3 }) },
    ),
    5,
  ),
  resume: rarely(fc.oneof(handlings, fc.constant([resumed, polite])), 2),
  /** Answers of the host to requests of the server. */
  POST: rarely(handling),
};

const description = {
  tools: rarely(
    fc.constantFrom(
      [{ ...echoTool, annotations: { readOnlyHint: true } }],
      [echoTool, { name: "second", inputSchema: { type: "object", required: ["a"] } }],
      [],
    ),
    3,
  ),
  pageSize: rarely(fc.constant(1)),
  protocolVersion: rarely(fc.constantFrom("2024-11-05", "2025-03-26", "2025-06-18")),
};

const login: fc.Arbitrary<NonNullable<HttpFaultProgram["oauth"]>> = fc.record({
  on: fc.record({
    token: rarely(fc.oneof(handling, stumbles), 3),
    "server-metadata": rarely(fc.oneof(handling, stumbles)),
    "resource-metadata": rarely(fc.oneof(handling, stumbles)),
  }) as fc.Arbitrary<never>,
  tokenMembers: rarely(
    fc.constantFrom<Record<string, unknown>>(
      { expires_in: 0 },
      { expires_in: 1 },
      { expires_in: "text" },
      { expires_in: -5 },
      { access_token: "always the same" },
      { access_token: 5 },
      { access_token: "" },
      { token_type: "mac" },
      { scope: 5 },
    ),
    2,
  ) as fc.Arbitrary<Record<string, unknown>>,
  serverMetadata: rarely(
    fc.constantFrom<Record<string, unknown>>(
      { issuer: "https://wrong.invalid" },
      { token_endpoint: "http://127.0.0.1:1/" },
      { token_endpoint: 5 },
      { token_endpoint: "https://elsewhere.invalid/token" },
      { token_endpoint_auth_methods_supported: [] },
      { token_endpoint_auth_methods_supported: ["client_secret_post"] },
    ),
  ) as fc.Arbitrary<Record<string, unknown>>,
  resourceMetadata: rarely(
    fc.constantFrom<Record<string, unknown>>(
      { authorization_servers: [] },
      { authorization_servers: [5] },
      { authorization_servers: "text" },
      { resource: "https://wrong.invalid/mcp" },
      { scopes_supported: ["a"] },
    ),
  ) as fc.Arbitrary<Record<string, unknown>>,
});

export const httpPrograms: fc.Arbitrary<HttpFaultProgram> = fc
  .record({
    server: fc.record({
      ...description,
      era: rarely(fc.constant("modern" as const)),
      sessions: rarely(fc.constant(false), 2),
      push: rarely(fc.constant(true), 3),
      answers: fc.constantFrom("json" as const, "sse" as const),
      on: fc.record({
        ...methods,
        GET: rarely(
          fc.oneof(handling, stumbles, fc.constant<Steps>([{ default: true }, { delay: 20 }, { end: true }])),
          3,
        ),
        DELETE: rarely(handling),
      }),
    }),
    flavor: rarely(fc.constant("streamable-http" as const), 3),
    oauth: rarely(login),
  })
  .map((program) => asJson(program) as unknown as HttpFaultProgram);

/** The standing stream of HTTP+SSE. */
const standing: fc.Arbitrary<Steps> = fc.oneof(
  fc.constantFrom<Steps>(
    [{ default: true }, { delay: 20 }, { end: true }],
    [{ default: true }, { delay: 40 }, { drop: true }],
    [{ event: { event: "endpoint", data: "https://elsewhere.invalid/message" } }, { never: true }],
    [{ event: { event: "endpoint", data: "http://[" } }, { never: true }],
    [{ event: { event: "endpoint", data: "" } }, { never: true }],
    [{ event: { event: "endpoint", data: "/message?sessionId=unknown" } }, { never: true }],
    [{ default: true }, { default: true }],
    [{ head: {} }, { never: true }],
    [{ default: true }, { repeat: 1_000_000, steps: [{ raw: ": alive\n\n" }], every: 5 }],
    [{ default: true }, { raw: "x".repeat(70_000) }, { delay: 5 }, { raw: "y".repeat(70_000) }],
  ),
  handling,
);

export const ssePrograms: fc.Arbitrary<HttpFaultProgram> = fc
  .record({
    server: fc.record({
      ...description,
      kind: fc.constant("sse" as const),
      on: fc.record({
        ...methods,
        GET: rarely(
          fc.oneof(
            standing,
            standing.map((steps) => [steps, polite]),
          ),
          3,
        ),
      }),
    }),
    flavor: rarely(fc.constant("sse" as const), 3),
  })
  .map((program) => asJson(program) as unknown as HttpFaultProgram);
