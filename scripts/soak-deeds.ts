/** What a soak does with a runtime: each deed answers how many calls it made, and fails with what nobody expects. */
import type { McpRuntime } from "../src/mod.ts";
import { guest, httpGuest, type SoakUrls } from "./soak-endpoints.ts";

export type Deed = () => Promise<number>;

/** Failures that a deed provokes are answered; all others are thrown. */
const expecting = async (tags: ReadonlyArray<string>, promise: Promise<unknown>): Promise<void> => {
  const failure = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (failure !== undefined && !tags.includes((failure as { _tag?: string })._tag ?? "")) throw failure;
};

/** What a server that forgets its sessions does to calls that are on their way. */
const forgotten = ["ConnectionLost", "HttpFailed"];

const equal = (found: unknown, wanted: unknown): void => {
  if (JSON.stringify(found) !== JSON.stringify(wanted))
    throw new Error(`answered ${JSON.stringify(found)?.slice(0, 200)}, not ${JSON.stringify(wanted)}`);
};

/** Every deed with its weight: how often it is done in a thousand. */
export const makeDeeds = (runtime: McpRuntime, urls: SoakUrls): ReadonlyArray<readonly [number, string, Deed]> => {
  let number = 0;
  const call = async (tool: string, args: Record<string, unknown>): Promise<unknown> =>
    (await runtime.callTool({ tool, arguments: args })).textContent;
  /** Many calls at once, each with an answer of its own. A server that forgets its sessions meanwhile may lose some. */
  const many =
    (handle: string, size: number): Deed =>
    async () => {
      const one = async (): Promise<void> => {
        const args = { n: (number += 1) };
        equal(await call(`${handle}__echo`, args), JSON.stringify(args));
      };
      await Promise.all(Array.from({ length: size }, () => expecting(forgotten, one())));
      return size;
    };
  const connector = (handle: string) => runtime.connectors().find((known) => known.handle === handle)!;

  return [
    [350, "echo over stdio", many("echo", 150)],
    [60, "echo over HTTP", many("json", 50)],
    [50, "echo over HTTP, answered by event streams", many("stream", 50)],
    [50, "echo over SSE", many("sse", 50)],
    [
      60,
      "add, modern era",
      async () => {
        for (let n = 0; n < 5; n++) equal(await call("modern__add", { a: n, b: 1 }), String(n + 1));
        return 5;
      },
    ],
    [
      100,
      "everything",
      async () => {
        equal(await call("everything__echo", { message: "hello" }), "Echo: hello");
        await call("everything__get-sum", { a: 1, b: 2 });
        await call("everything__get-tiny-image", {});
        await call("everything__get-resource-reference", { resourceType: "Text", resourceId: 1 });
        return 4;
      },
    ],
    [
      100,
      "progress",
      async () => {
        let progress = 0;
        const onProgress = (): void => void (progress += 1);
        await runtime.callTool({ tool: "reports__echo", arguments: {} }, { onProgress });
        await runtime.callTool(
          { tool: "everything__trigger-long-running-operation", arguments: { duration: 0.02, steps: 2 } },
          { onProgress },
        );
        if (progress === 0) throw new Error("no progress was reported");
        return 2;
      },
    ],
    [
      60,
      "cancellation",
      async () => {
        const controller = new AbortController();
        const { signal } = controller;
        const tools = ["mute__echo", "stream__slow", "sse__slow", "modern__wait"];
        const calls = tools.map((tool) => runtime.callTool({ tool, arguments: {} }, { signal }));
        setTimeout(() => controller.abort({ _tag: "GivenUp" }), 10);
        await Promise.all(calls.map((each) => expecting(["GivenUp", ...forgotten], each)));
        return tools.length;
      },
    ],
    [
      40,
      "timeout",
      async () => {
        const tools = ["mute__echo", "json__slow", "modern__wait"];
        const calls = tools.map((tool) => runtime.callTool({ tool, arguments: {} }, { timeout: 15 }));
        await Promise.all(calls.map((each) => expecting(["RequestTimeout", ...forgotten], each)));
        return tools.length;
      },
    ],
    [
      20,
      "cut connection",
      async () => {
        const cut = runtime.callTool({ tool: "json__slow", arguments: { cut: true } }, { timeout: 500 });
        await expecting(["RequestTimeout", ...forgotten], cut);
        return 1;
      },
    ],
    [
      50,
      "large result and its artifact",
      async () => {
        const result = await runtime.callTool({ tool: "large__echo", arguments: {} });
        const ref = /artifact:[^"\s]+~\w+/.exec(runtime.modelText(result, 1000))?.[0];
        if (ref === undefined) throw new Error("no artifact was made");
        await call("get_artifact_field", { ref, pointer: "", offset: 0, length: 1000 });
        return 2;
      },
    ],
    [
      30,
      "lists",
      async () => {
        await runtime.tools({ artifacts: true });
        for (const provider of await connector("everything").providers()) JSON.stringify(provider);
        await using client = await runtime.client(connector("everything").endpoint);
        await client.listResources();
        await client.listPrompts();
        return 3;
      },
    ],
    [
      10,
      "death of a server",
      async () => {
        await expecting(["ConnectionLost"], runtime.callTool({ tool: "mortal__echo", arguments: {} }));
        return 1;
      },
    ],
    [
      10,
      "guests come and go",
      async () => {
        const id = (number += 1);
        const guests = [guest(id), httpGuest(urls, id)];
        await Promise.all(
          guests.map(async (endpoint, at) => {
            const attached = await runtime.attach(`guest-${at}`, endpoint);
            const [first] = await attached.providers();
            await (await first!.create()).execute({});
            await runtime.detach(attached);
          }),
        );
        return guests.length;
      },
    ],
    [
      10,
      "guest given up",
      async () => {
        const signal = AbortSignal.timeout(number % 100);
        await runtime.client(guest((number += 1)), { signal }).then(
          (client) => client.close(),
          () => {},
        );
        return 0;
      },
    ],
  ];
};
