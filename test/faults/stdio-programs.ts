/** Random fault programs for the scripted stdio server: mostly polite, with a few faults of any kind. */
import * as fc from "fast-check";
import type { StdioProgram, Step } from "../support/scripted-stdio.ts";
import { asJson, bytes, drip, echoTool, form, handlingOf, oddIds, oddities, oneOf, wait } from "./program-parts.ts";

type Steps = ReadonlyArray<Step>;

const lines: ReadonlyArray<string> = [
  "not json\n",
  "\n\n\r\n",
  "{}\n",
  "[]\n",
  "null\n",
  '{"jsonrpc":"2.0"}\n',
  '{"jsonrpc":"1.0","id":$id,"result":{}}\n',
  '{"jsonrpc":"2.0","id":$id}\n',
  '{"jsonrpc":"2.0","id":$id,"result":{"content":[]},"error":{"code":1,"message":"both"}}\n',
  '{"jsonrpc":"2.0","id":$id,"error":"text"}\n',
  '{"jsonrpc":"2.0","id":$id,"error":{"code":"text"}}\n',
  '{"jsonrpc":"2.0","method":5,"id":$id}\n',
  '{"jsonrpc":"2.0","id":[$id],"result":{}}\n',
  '{"jsonrpc":"2.0","id":"$id","result":{}}\n',
  '{"jsonrpc":"2.0","id":$id,"res',
  '[{"jsonrpc":"2.0","id":$id,"result":{"content":[]}},5,null]\n',
];

const notifications: ReadonlyArray<{ readonly method: string; readonly params?: unknown }> = [
  { method: "notifications/unknown" },
  { method: "notifications/tools/list_changed" },
  { method: "notifications/progress", params: { progressToken: "$token", progress: 1 } },
  { method: "notifications/progress", params: { progressToken: "unknown", progress: 1 } },
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
  { method: "elicitation/create", params: { message: 5 } },
  { method: "roots/list" },
  { method: "tools/call", params: { name: "echo" } },
];

const signals = fc.constantFrom("SIGKILL", "SIGTERM", "SIGSEGV");

/** Ends the process, or its voice. */
const death: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ exit: fc.constantFrom(0, 1, 137) }),
  fc.record({ kill: signals }),
  fc.constant<Step>({ closeStdout: true }),
);

const grandchild: fc.Arbitrary<Step> = fc.record({
  grandchild: fc.record({ holdsPipes: fc.boolean(), ignoreSigterm: fc.boolean() }),
});

const answer: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ echo: true }) },
  { weight: 2, arbitrary: fc.constant<Step>({ never: true }) },
  { weight: 2, arbitrary: fc.record({ reply: oneOf(oddities) }) },
  { weight: 2, arbitrary: fc.record({ reply: fc.constant({ content: [] }), drip }) },
  { weight: 2, arbitrary: fc.record({ reply: fc.constant({ content: [] }), id: oneOf(oddIds) }) },
  {
    weight: 1,
    arbitrary: fc.record({ big: fc.constantFrom(5_000, 100_000, 1_200_000), char: fc.constantFrom("x", "é") }),
  },
  { weight: 1, arbitrary: fc.record({ big: fc.constant(20_000), drip: fc.constant({ size: 4096 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      error: fc.record({ code: fc.constantFrom(-32601, -32602, -32603, -32700, 0, 401), message: fc.constant("no") }),
    }),
  },
);

const disturbance: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ delay: wait }) },
  { weight: 3, arbitrary: fc.record({ raw: oneOf(lines) }) },
  { weight: 2, arbitrary: fc.record({ bytes: oneOf(bytes) }) },
  { weight: 2, arbitrary: fc.record({ notify: oneOf(notifications) }) },
  {
    weight: 2,
    arbitrary: fc
      .tuple(oneOf(requests), fc.constantFrom<unknown>("a", 1, 7, null))
      .map(([request, id]): Step => ({ request: { id, ...request } })),
  },
  {
    weight: 1,
    arbitrary: fc.record({ stderrFlood: fc.record({ bytes: fc.constantFrom(200, 200_000), newline: fc.boolean() }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      stdoutFlood: fc.constantFrom(100, 200_000, 1_500_000),
      head: fc.constantFrom("", '{"jsonrpc":"2.0","id":$id,"result":{"x":"'),
      tail: fc.constantFrom("", '"}}'),
    }),
  },
  { weight: 3, arbitrary: death },
  { weight: 1, arbitrary: grandchild },
);

const handling: fc.Arbitrary<Steps> = handlingOf(disturbance, answer);
const polite: Steps = [];
const handlings: fc.Arbitrary<ReadonlyArray<Steps>> = fc.array(
  fc.oneof({ weight: 1, arbitrary: fc.constant(polite) }, { weight: 2, arbitrary: handling }),
  { minLength: 1, maxLength: 6 },
);

const handshakes: ReadonlyArray<Steps> = [
  [{ never: true }],
  [{ exit: 1 }],
  [{ kill: "SIGKILL" }],
  [{ closeStdout: true }],
  [{ delay: 100 }],
  [{ raw: "Starting…\n" }],
  [{ error: { code: -32601, message: "Method not found" } }],
  [{ error: { code: -32602, message: "Unsupported protocol version" } }],
  ...oddities.map((reply): Steps => [{ reply }]),
  [{ reply: { protocolVersion: 5, capabilities: {}, serverInfo: { name: "s", version: "1" } } }],
  [{ reply: { protocolVersion: "1999-01-01", capabilities: {}, serverInfo: { name: "s", version: "1" } } }],
  [{ reply: { protocolVersion: "2025-06-18", capabilities: "text", serverInfo: null } }],
  [{ reply: { protocolVersion: "2025-06-18", capabilities: { tools: 5 }, serverInfo: { name: 5 } } }],
  [
    { reply: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } } },
    { exit: 1 },
  ],
];
const starts: ReadonlyArray<Steps> = [
  [{ exit: 1 }],
  [{ kill: "SIGSEGV" }],
  [{ closeStdout: true }],
  [{ delay: 150 }],
  [{ raw: "> server@1.0.0 start\n> node .\n\n" }],
  [{ stderrFlood: { bytes: 300_000 } }],
  [{ stdoutFlood: 200_000 }],
  [{ bytes: "/////wr/" }],
  [{ grandchild: { holdsPipes: true } }],
  [{ grandchild: { holdsPipes: false, ignoreSigterm: true } }],
  [{ notify: { method: "notifications/tools/list_changed" } }],
  [{ request: { id: 1, method: "ping" } }],
];

const toolLists: ReadonlyArray<unknown> = [
  { tools: null },
  { tools: "text" },
  { tools: [null, 5, { name: 5 }, { name: "" }, echoTool] },
  { tools: [echoTool, echoTool, { ...echoTool, inputSchema: 5 }] },
  { tools: [echoTool], nextCursor: "again" },
  { tools: [echoTool], nextCursor: 5 },
  { tools: [{ ...echoTool, outputSchema: { type: "object", required: ["a"] } }] },
];

/** Mostly undefined: `weight` in twelve cases the value. */
const rarely = <A>(value: fc.Arbitrary<A>, weight = 2): fc.Arbitrary<A | undefined> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: 12 - weight, arbitrary: fc.constant(undefined) },
    { weight, arbitrary: value },
  );

const methods = fc.record({
  initialize: rarely(oneOf(handshakes), 1),
  "notifications/initialized": rarely(handling),
  "notifications/cancelled": rarely(handling),
  ping: rarely(handlings, 4),
  "tools/list": rarely(
    fc.oneof(
      oneOf(toolLists).map((reply): Steps => [{ reply }]),
      handlings,
    ),
    2,
  ),
  "tools/call": rarely(handlings, 11),
});

export const stdioPrograms: fc.Arbitrary<StdioProgram> = fc
  .record({
    onStart: rarely(
      fc.array(fc.oneof({ weight: 2, arbitrary: oneOf(starts) }, { weight: 1, arbitrary: fc.constant(polite) }), {
        minLength: 1,
        maxLength: 3,
      }),
    ),
    on: methods,
    tools: rarely(
      fc.constantFrom(
        [{ ...echoTool, annotations: { readOnlyHint: true } }],
        [echoTool, { name: "second", inputSchema: { type: "object", required: ["a"] } }],
        [],
      ),
      3,
    ),
    pageSize: rarely(fc.constant(1)),
    protocolVersion: rarely(fc.constantFrom("2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18")),
    ignoreStdinEnd: rarely(fc.constant(true)),
    ignoreSigterm: rarely(fc.constant(true)),
  })
  .map((program) => asJson(program) as unknown as StdioProgram);
