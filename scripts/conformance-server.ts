/**
 * Lets the official referee judge the gateway in front of server-everything, row by row:
 * `npm run conformance -- server`. For the legacy revision server-everything is judged
 * alone too, and no row may be worse behind the gateway. The other revision it does not
 * speak itself; there every row must pass but those that need the referee's own tools,
 * prompts and resources, which server-everything does not have.
 */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { startEverythingHttp } from "../examples/support/everything-http.ts";
import { nodeBinary, script } from "../examples/support/servers.ts";
import { StdioEndpoint } from "../src/mod.ts";
import { createGateway } from "../src/serve.ts";

const referee = fileURLToPath(
  new URL("../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

/** Checks of one row. */
export interface Verdict {
  readonly passed: number;
  readonly failed: number;
}
export type Verdicts = ReadonlyMap<string, Verdict>;

/** The rows of a revision, judged one after the other. The referee's exit code says only whether one failed. */
const judge = (url: string, revision: string): Promise<Verdicts> =>
  new Promise((resolve) => {
    const args = [referee, "server", "--url", url, "--suite", "all", "--spec-version", revision];
    execFile(nodeBinary, args, { maxBuffer: 64 * 1024 * 1024 }, (_error, stdout) => {
      const rows = stdout.matchAll(/^[✓✗] ([\w-]+): (\d+) passed, (\d+) failed/gm);
      const verdict = (passed: string, failed: string): Verdict => ({ passed: Number(passed), failed: Number(failed) });
      resolve(new Map(Array.from(rows, ([, name, passed, failed]) => [name!, verdict(passed!, failed!)])));
    });
  });

/**
 * Checks that cannot pass in front of server-everything, by row: they call the referee's
 * own `test_…` tools and prompts, or read its `test://` resources.
 */
export const beyondEverything: Readonly<Record<string, number>> = {
  // Two checks call `test_missing_capability`.
  "server-stateless": 2,
  "completion-complete": 1,
  "tools-call-image": 1,
  "tools-call-audio": 1,
  "tools-call-embedded-resource": 1,
  "tools-call-mixed-content": 1,
  "tools-call-with-progress": 1,
  // Needs `json_schema_2020_12_tool`.
  "json-schema-2020-12": 1,
  "resources-read-text": 1,
  "resources-read-binary": 1,
  "resources-templates-read": 1,
  "prompts-get-simple": 1,
  "prompts-get-with-args": 1,
  "prompts-get-embedded-resource": 1,
  "prompts-get-with-image": 1,
  // Needs a tool with `x-mcp-header`.
  "http-custom-header-server-validation": 5,
  "input-required-result-basic-elicitation": 1,
  "input-required-result-basic-sampling": 1,
  "input-required-result-basic-list-roots": 1,
  "input-required-result-request-state": 1,
  "input-required-result-multiple-input-requests": 1,
  "input-required-result-multi-round": 1,
  "input-required-result-non-tool-request": 1,
  "input-required-result-result-type": 1,
  "input-required-result-tampered-state": 1,
  "input-required-result-capability-check": 1,
};

export interface Judgement {
  readonly legacy: { readonly alone: Verdicts; readonly behind: Verdicts };
  readonly modern: Verdicts;
}

/** Judges server-everything, alone and behind a gateway of its own. */
export const judgeServers = async (): Promise<Judgement> => {
  await using everything = await startEverythingHttp();
  await using gateway = await createGateway();
  const name = "everything";
  const args = [script("server-everything")];
  await gateway.runtime.attach(name, new StdioEndpoint({ name, command: nodeBinary, args }));
  const { url } = await gateway.listen();
  const alone = await judge(everything.url, "2025-11-25");
  const behind = await judge(url, "2025-11-25");
  return { legacy: { alone, behind }, modern: await judge(url, "2026-07-28") };
};

/** The rows that are not as they should be, with the failures that were allowed. */
export const breaches = ({ legacy, modern }: Judgement): ReadonlyArray<string> => {
  const found = (revision: string, verdicts: Verdicts, allowed: (row: string) => number) =>
    [...verdicts].flatMap(([row, { failed }]) =>
      failed > allowed(row) ? [`${row}@${revision}: ${failed} failed, ${allowed(row)} allowed`] : [],
    );
  return [
    ...found("2025-11-25", legacy.behind, (row) => legacy.alone.get(row)?.failed ?? 0),
    ...found("2026-07-28", modern, (row) => beyondEverything[row] ?? 0),
  ];
};

/** Judges, prints a line for each row, and answers the process's exit code. */
export const conformServers = async (): Promise<number> => {
  const judgement = await judgeServers();
  const { legacy, modern } = judgement;
  for (const [row, { passed, failed }] of legacy.behind) {
    const alone = legacy.alone.get(row);
    console.log(`${row}@2025-11-25: ${passed} passed, ${failed} failed; alone ${alone?.passed}, ${alone?.failed}`);
  }
  for (const [row, { passed, failed }] of modern)
    console.log(
      `${row}@2026-07-28: ${passed} passed, ${failed} failed${failed > 0 ? ` (${beyondEverything[row] ?? 0} need what server-everything lacks)` : ""}`,
    );
  const wrong = breaches(judgement);
  for (const line of wrong) console.log(`WORSE  ${line}`);
  const sum = (verdicts: Verdicts, key: keyof Verdict) => [...verdicts.values()].reduce((n, one) => n + one[key], 0);
  for (const [name, verdicts] of [
    ["alone, 2025-11-25", legacy.alone],
    ["gateway, 2025-11-25", legacy.behind],
    ["gateway, 2026-07-28", modern],
  ] as const)
    console.log(`${name}: ${sum(verdicts, "passed")} passed, ${sum(verdicts, "failed")} failed, ${verdicts.size} rows`);
  return wrong.length === 0 && legacy.behind.size > 25 && modern.size > 35 ? 0 : 1;
};
