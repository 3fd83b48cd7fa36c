import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "@effect/vitest";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import { lift } from "../../src/core/answer.ts";
import type { CatalogPolicy, HostHandlers, Observer } from "../../src/core/contracts.ts";
import { errorPresenter } from "../../src/core/ports.ts";
import { mcpJsonLoader } from "../../src/plugins/endpoints/mcp-json.ts";
import { loggerObserver } from "../../src/plugins/observers/logger.ts";
import { metricsObserver } from "../../src/plugins/observers/metrics.ts";
import { memoryPinStore } from "../../src/core/pinning/tool-pins.ts";
import { fileArtifactStore, filePinStore, fileTokenStore, fileVerdictStore } from "../../src/stores.ts";
import {
  artifactStoreContract,
  catalogPolicyContract,
  endpointLoaderContract,
  errorPresenterContract,
  hostHandlersContract,
  observerContract,
  pinStoreContract,
  tokenStoreContract,
  verdictStoreContract,
} from "../../src/testing.ts";
import { checkSuite } from "./check-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "nucleo-mcp-contract-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const secret = "s3cr3t-of-the-file";
checkSuite(
  "mcp.json loader",
  endpointLoaderContract({
    loader: mcpJsonLoader,
    good: {
      source: file(
        "good.json",
        JSON.stringify({
          mcpServers: {
            files: { command: "node", args: ["server.js"], env: { TOKEN: secret } },
            remote: { url: "https://example.com/mcp", headers: { Authorization: `Bearer ${secret}` } },
          },
        }),
      ),
      handles: ["files", "remote"],
    },
    bad: {
      "a file that is not there": join(folder, "none.json"),
      "a file that is no JSON": file("bad.json", `{"mcpServers": {"a": {"env": {"T": "${secret}"`),
      "a file without servers": file("empty.json", "{}"),
      "an entry without command and url": file("entry.json", `{"mcpServers":{"a":{"env":{"T":"${secret}"}}}}`),
      "a variable that is missing": file(
        "variable.json",
        `{"mcpServers":{"a":{"command":"\${NUCLEO_MCP_NO_SUCH_VARIABLE}","env":{"T":"${secret}"}}}}`,
      ),
    },
    secrets: [secret],
  }),
);

const lines: Array<string> = [];
const collector = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))]);
const collected: Observer = {
  on: (event) =>
    Effect.provide(
      lift("logger", () => loggerObserver.on(event)),
      collector,
    ),
};
checkSuite("logger", observerContract({ observer: collected, written: () => lines.join("\n") }));
checkSuite("metrics", observerContract({ observer: metricsObserver }));

checkSuite("token files", tokenStoreContract({ store: fileTokenStore({ directory: join(folder, "tokens") }) }));
checkSuite("verdict files", verdictStoreContract({ store: fileVerdictStore({ directory: join(folder, "verdicts") }) }));
checkSuite("pins in memory", pinStoreContract({ store: memoryPinStore() }));
const pins = join(folder, "pins");
checkSuite(
  "pin files",
  pinStoreContract({
    store: filePinStore({ directory: pins }),
    spoil: (key) => {
      for (const name of readdirSync(pins)) {
        const path = join(pins, name);
        if (readFileSync(path, "utf8").includes(JSON.stringify(key))) writeFileSync(path, '{"key": "half');
      }
    },
  }),
);
checkSuite(
  "artifact files",
  artifactStoreContract({ store: fileArtifactStore({ directory: join(folder, "artifacts") }) }),
);

const handlers: HostHandlers = {
  sampling: () => ({ role: "assistant", model: "none", content: { type: "text", text: "yes" } }),
  elicitation: { form: () => ({ action: "accept", content: { name: "Ada" } }), url: () => ({ action: "decline" }) },
  roots: () => [{ uri: "file:///work" }],
};
checkSuite("host handlers, as a host may write them", hostHandlersContract({ handlers }));

const policy: CatalogPolicy = {
  decide: ({ annotations, name }) => {
    if (annotations?.["destructiveHint"] === true) return "hide";
    return name === "read" ? { rename: "read_file" } : "keep";
  },
};
checkSuite("catalog policy, as a host may write it", catalogPolicyContract({ policy }));
checkSuite(
  "the errors' own messages",
  errorPresenterContract({ presenter: Context.get(Context.empty(), errorPresenter.service) }),
);
