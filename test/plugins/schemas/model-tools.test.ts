/** Tools on their way to a model and back: the runtime lists, a provider's form is made, a call comes back in that form. */
import { describe, expect, it } from "@effect/vitest";
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { aiTools } from "../../../src/ai-sdk.ts";
import {
  anthropic,
  defineTools,
  gemini,
  openai,
  openaiStrict,
  toolsFor,
  type ToolFormat,
} from "../../../src/dialects.ts";
import { langchainTools } from "../../../src/langchain.ts";
import { createRuntime, InvalidArguments, type McpRuntime, ports, type ToolDefinition } from "../../../src/mod.ts";
import { ownCatalogs } from "../../corpus/read.ts";
import { scriptedEngine, ScriptedEndpoint, scriptedTransport } from "../../support/scripted-endpoint.ts";

/** A runtime with one server that offers the own corpus and answers with the arguments it got. */
const withCorpus = async (use: (runtime: McpRuntime) => Promise<void>): Promise<void> => {
  await using runtime = await createRuntime({
    setup: (container) => {
      container.registerInstance(ports.transports.token, scriptedTransport());
      container.registerInstance(ports.engines.token, scriptedEngine);
    },
  });
  const endpoint = new ScriptedEndpoint("corpus");
  endpoint.tools = ownCatalogs().flatMap(({ tools }) => tools);
  endpoint.answer = (_method, params) => ({
    content: [{ type: "text", text: JSON.stringify(params?.["arguments"]) }],
    isError: JSON.stringify(params).includes("please fail"),
  });
  await runtime.attach("corpus", endpoint);
  await use(runtime);
};

const definition = (fields: Partial<ToolDefinition>): ToolDefinition => ({
  name: "h__tool",
  handle: "h",
  tool: "tool",
  inputSchema: { type: "object", properties: { a: { type: "string" } } },
  ...fields,
});

describe("definitions for requests", () => {
  it("the shapes of the four APIs", () => {
    const given = [definition({ description: "Does it." })];
    const schema = { type: "object", properties: { a: { type: "string" } } };
    expect(defineTools(given, "anthropic").tools).toEqual([
      { name: "h__tool", description: "Does it.", input_schema: schema },
    ]);
    expect(defineTools(given, "openai-responses").tools).toEqual([
      { type: "function", name: "h__tool", description: "Does it.", parameters: schema, strict: false },
    ]);
    expect(defineTools(given, "openai-chat").tools).toEqual([
      { type: "function", function: { name: "h__tool", description: "Does it.", parameters: schema, strict: false } },
    ]);
    expect(defineTools(given, "gemini").tools).toEqual([
      { name: "h__tool", description: "Does it.", parameters: schema },
    ]);
  });

  it("a tool without arguments has no parameters for Gemini", () => {
    expect(defineTools([definition({ inputSchema: { type: "object" } })], "gemini").tools[0]).toEqual({
      name: "h__tool",
      description: "tool",
    });
  });

  it("strict mode where it can be, without it where it cannot, and the reason is told", () => {
    const free = definition({
      name: "h__free",
      inputSchema: { type: "object", additionalProperties: { type: "string" } },
    });
    const { tools, loose, skipped } = defineTools([definition({}), free], "openai-responses", { strict: true });
    expect(tools.map(({ name, strict }) => [name, strict])).toEqual([
      ["h__tool", true],
      ["h__free", false],
    ]);
    expect(loose).toEqual([{ name: "h__free", reason: expect.stringContaining("free names") }]);
    expect(skipped).toEqual([]);
  });

  it("a tool that cannot be given is skipped with its reason, the others stay", () => {
    const hopeless = definition({ name: "h__bad", inputSchema: { type: "string" } });
    for (const format of ["anthropic", "openai-chat", "gemini"] satisfies Array<ToolFormat>) {
      const { tools, skipped } = defineTools([hopeless, definition({})], format);
      expect(tools).toHaveLength(1);
      expect(skipped).toEqual([{ name: "h__bad", reason: expect.stringContaining("object") }]);
    }
  });

  it("a description over OpenAI's limit goes on in the parameters, and nothing of it is lost", () => {
    const words = Array.from({ length: 400 }, (_, i) => `word${i}`).join(" ");
    const union = {
      anyOf: [
        { type: "object", required: ["a"] },
        { type: "object", required: ["b"] },
      ],
    };
    const [tool] = defineTools([definition({ description: words, inputSchema: union })], "openai-responses").tools;
    expect(tool!.description.length).toBeLessThanOrEqual(1024);
    expect(tool!.description).toMatch(/…\n\nArguments: one of these combinations/);
    const shown = tool!.description.split("…")[0]!;
    expect(`${shown} ${String(tool!.parameters["description"]).replace("…", "")}`).toBe(words);
    expect(openai.accepts(tool!.parameters)).toEqual([]);
    expect(defineTools([definition({ description: words })], "anthropic").tools[0]!.description).toBe(words);
  });

  it("each schema is written once, however often tools are asked for", () => {
    const given = definition({});
    const [first, second] = [defineTools([given], "anthropic"), defineTools([given], "anthropic")];
    expect(first.tools[0]!.input_schema).toBe(second.tools[0]!.input_schema);
  });
});

const echoed = async (runtime: McpRuntime, tool: string, args: Record<string, unknown>): Promise<unknown> =>
  JSON.parse((await runtime.callTool({ tool, arguments: args })).textContent);

describe("a model's call in a provider's form reaches the server in the tool's own", () => {
  it("strict mode: nulls and JSON text", () =>
    withCorpus(async (runtime) => {
      const { tools } = await toolsFor(runtime, "openai-responses", { strict: true });
      const zod = tools.find(({ name }) => name === "corpus__zod")!;
      expect(zod.strict).toBe(true);
      const args = Object.fromEntries((zod.parameters["required"] as Array<string>).map((name) => [name, null]));
      const given = { ...args, shape: { type: "circle", radius: 2 }, labels: '{"a":1}', level: 2 };
      expect(await echoed(runtime, zod.name, given)).toEqual({
        shape: { type: "circle", radius: 2 },
        labels: { a: 1 },
        level: 2,
        mixed: null,
      });
    }));

  it("Gemini and Anthropic: renamed parameters, fixed values as text", () =>
    withCorpus(async (runtime) => {
      const named = async (format: "anthropic" | "gemini"): Promise<string> => {
        const { tools } = await toolsFor(runtime, format);
        const tool: any = tools.find(({ name }) => name === "corpus__openapi")!;
        return Object.keys((tool.parameters ?? tool.input_schema).properties).find((name) =>
          name.startsWith("StartTime"),
        )!;
      };
      for (const format of ["anthropic", "gemini"] as const) {
        const name = await named(format);
        expect(name).not.toBe("StartTime<");
        expect(await echoed(runtime, "corpus__openapi", { [name]: "now" })).toEqual({ "StartTime<": "now" });
      }
      const zod = { shape: { type: "circle", radius: 2 }, level: "2" };
      expect(await echoed(runtime, "corpus__zod", zod)).toEqual({ ...zod, level: 2 });
    }));

  it("what does not fit is refused before it is sent, in words", () =>
    withCorpus(async (runtime) => {
      const call = runtime.callTool({ tool: "corpus__zod", arguments: { shape: { type: "circle", radius: null } } });
      await expect(call).rejects.toBeInstanceOf(InvalidArguments);
      await expect(call).rejects.toThrow(/radius/);
    }));

  it("a dialect as the host's normalizer makes every listed schema fit the provider", async () => {
    for (const dialect of [anthropic, openai, openaiStrict, gemini]) {
      await using runtime = await createRuntime({
        setup: (container) => {
          container.registerInstance(ports.transports.token, scriptedTransport());
          container.registerInstance(ports.engines.token, scriptedEngine);
          container.registerInstance(ports.schemaNormalizers.token, dialect);
        },
      });
      const endpoint = new ScriptedEndpoint("corpus");
      endpoint.tools = ownCatalogs().flatMap(({ tools }) => tools);
      await runtime.attach("corpus", endpoint);
      const tools = await runtime.tools();
      expect(tools).toHaveLength(endpoint.tools.length);
      for (const tool of tools) expect(dialect.accepts(tool.inputSchema)).toEqual([]);
    }
  });
});

const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } } as never;

/** A model that asks for one tool, then repeats what it was told. */
const modelThatCalls = (toolName: string, input: object, prompts: Array<any>): MockLanguageModelV4 =>
  new MockLanguageModelV4({
    doGenerate: async (options) => {
      prompts.push(options);
      const told = options.prompt.at(-1)!;
      if (told.role !== "tool") {
        const call = { type: "tool-call" as const, toolCallId: "1", toolName, input: JSON.stringify(input) };
        return { content: [call], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
      }
      const text = JSON.stringify((told.content[0] as any).output);
      return {
        content: [{ type: "text", text }],
        finishReason: { unified: "stop", raw: undefined },
        usage,
        warnings: [],
      };
    },
  });

describe("Vercel AI SDK", () => {
  it("a model sees the tools, its call runs, it reads the answer", () =>
    withCorpus(async (runtime) => {
      const prompts: Array<any> = [];
      const model = modelThatCalls("corpus__pydantic", { name: "Ada", kind: "person" }, prompts);
      const tools = await aiTools(runtime, { dialect: anthropic });
      const { text } = await generateText({ model, tools, prompt: "go", stopWhen: isStepCount(3) });
      expect(JSON.parse(text)).toEqual({ type: "text", value: expect.stringContaining('"Ada"') });
      const offered = prompts[0].tools.find(({ name }: { name: string }) => name === "corpus__pydantic");
      expect(offered.inputSchema.properties.name).toMatchObject({ type: "string", minLength: 1 });
    }));

  it("a tool's own error, and arguments that do not fit, are errors the model reads", () =>
    withCorpus(async (runtime) => {
      for (const [input, expected] of [
        [{ name: "please fail", kind: "person" }, /please fail/],
        [{ name: "", kind: "robot" }, /must be/],
      ] as const) {
        const model = modelThatCalls("corpus__pydantic", input, []);
        const { text } = await generateText({
          model,
          tools: await aiTools(runtime),
          prompt: "go",
          stopWhen: isStepCount(3),
        });
        expect(JSON.parse(text).type).toBe("error-text");
        expect(text).toMatch(expected);
      }
    }));
});

describe("LangChain", () => {
  it("a tool call answers a message with the text and the whole result", () =>
    withCorpus(async (runtime) => {
      const tools = await langchainTools(runtime, { dialect: openaiStrict });
      expect(tools.length).toBeGreaterThan(5);
      const tool = tools.find(({ name }) => name === "corpus__pydantic")!;
      const args = {
        name: "Ada",
        kind: "person",
        nick: null,
        color: null,
        at: null,
        pair: null,
        tags: null,
        extra: null,
        anything: null,
      };
      const message = await tool.invoke({ type: "tool_call", id: "1", name: tool.name, args } as never);
      expect(JSON.parse((message as any).content)).toEqual({
        name: "Ada",
        kind: "person",
        nick: null,
        at: null,
        anything: null,
      });
      expect((message as any).artifact.isError).toBe(false);
    }));

  it("an abort ends the call", () =>
    withCorpus(async (runtime) => {
      const [tool] = await langchainTools(runtime);
      const signal = AbortSignal.abort(new Error("enough"));
      await expect(tool!.invoke({ name: "Ada", kind: "person" }, { signal })).rejects.toThrow();
    }));

  it("a tool that a dialect cannot say is skipped, one by one", async () => {
    const source = {
      tools: async () => [definition({ name: "h__bad", inputSchema: { type: "string" } }), definition({})],
    };
    const skipped: Array<string> = [];
    const tools = await langchainTools({ ...source } as never, {
      dialect: gemini,
      onSkipped: ({ name }) => skipped.push(name),
    });
    expect(tools.map(({ name }) => name)).toEqual(["h__tool"]);
    expect(skipped).toEqual(["h__bad"]);
    const set = await aiTools({ ...source } as never, { dialect: gemini, onSkipped: ({ name }) => skipped.push(name) });
    expect(Object.keys(set)).toEqual(["h__tool"]);
    expect(skipped).toEqual(["h__bad", "h__bad"]);
  });
});
