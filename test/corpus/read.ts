/**
 * Test data: the own small corpus, and the public collections where they lie beside the
 * repository (`../shared`, or the folder that `NUCLEO_MCP_SHARED` names).
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Group {
  readonly file: string;
  readonly draft: Draft;
  readonly description: string;
  readonly schema: unknown;
  readonly tests: ReadonlyArray<{ readonly description?: string; readonly data: unknown; readonly valid: boolean }>;
}

export interface Catalog {
  readonly server: string;
  readonly tools: ReadonlyArray<{
    readonly name: string;
    readonly description?: string;
    readonly inputSchema: unknown;
  }>;
}

export const drafts = {
  draft7: "http://json-schema.org/draft-07/schema#",
  "draft2019-09": "https://json-schema.org/draft/2019-09/schema",
  "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
} as const;
export type Draft = keyof typeof drafts;

const here = fileURLToPath(new URL("./", import.meta.url));
const shared = process.env["NUCLEO_MCP_SHARED"] ?? fileURLToPath(new URL("../../../shared/", import.meta.url));

const readJson = (path: string): any => JSON.parse(readFileSync(path, "utf8"));
const jsonFiles = (folder: string): Array<string> =>
  existsSync(folder)
    ? readdirSync(folder)
        .filter((name) => name.endsWith(".json"))
        .toSorted()
    : [];

/** Groups of references of our own; the draft is 2020-12 unless the schema names one. */
export const ownGroups = (): Array<Group> =>
  readJson(`${here}references.json`).map((group: any): Group => {
    const named = Object.entries(drafts).find(([, uri]) => uri === group.schema.$schema)?.[0];
    return { file: "references.json", draft: (named as Draft | undefined) ?? "draft2020-12", ...group };
  });

/** Groups of the public JSON-Schema-Test-Suite; none when it is not there. */
export const suiteGroups = (): Array<Group> =>
  (Object.keys(drafts) as Array<Draft>).flatMap((draft) => {
    const folder = `${shared}/json-schema-tests/${draft}`;
    return jsonFiles(folder).flatMap((file) =>
      readJson(`${folder}/${file}`).map((group: object) => ({ file, draft, ...group })),
    );
  });

const catalog = (path: string, server: string): Catalog => ({ server, tools: readJson(path).tools });

/** Tool lists of our own. */
export const ownCatalogs = (): Array<Catalog> => [catalog(`${here}tools.json`, "own corpus")];

/** Recorded tool lists of real servers; none when they are not there. */
export const recordedCatalogs = (): Array<Catalog> =>
  jsonFiles(`${shared}/catalogs`).map((file) => catalog(`${shared}/catalogs/${file}`, file.replace(/\.json$/, "")));
