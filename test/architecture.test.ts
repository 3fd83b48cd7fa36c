/** The house rules of the source tree: who may import whom, and how long a file may be. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";

const root = fileURLToPath(new URL("../src", import.meta.url));

interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** `await import(…)`: loaded when used, not when the module is. */
  readonly lazy: boolean;
}
interface Source {
  readonly path: string;
  readonly text: string;
  readonly codeLines: number;
  readonly imports: ReadonlyArray<Import>;
}

const code = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, "").replace(/^\s*\/\/.*$/gm, "");

const importsOf = (text: string): ReadonlyArray<Import> => {
  const found: Array<Import> = [];
  for (const [, type, names, specifier] of text.matchAll(
    /^(?:import|export)\s+(type\s+)?([^;"']*?)from\s+"([^"]+)"/gm,
  )) {
    const named = names!
      .match(/^\{([^}]*)\}\s*$/)?.[1]
      ?.split(",")
      .map((name) => name.trim())
      .filter(Boolean);
    const typeOnly = Boolean(type) || (named?.every((name) => name.startsWith("type ")) ?? false);
    found.push({ specifier: specifier!, typeOnly, lazy: false });
  }
  for (const [, specifier] of text.matchAll(/^import\s+"([^"]+)"/gm)) {
    found.push({ specifier: specifier!, typeOnly: false, lazy: false });
  }
  for (const [, specifier] of text.matchAll(/\bimport\(\s*"([^"]+)"\s*,?\s*\)(?!\.[A-Z])/g)) {
    found.push({ specifier: specifier!, typeOnly: false, lazy: true });
  }
  return found;
};

const sources: ReadonlyArray<Source> = readdirSync(root, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => {
    const text = readFileSync(join(root, path), "utf8");
    const lines = code(text).split("\n");
    return {
      path: path.replaceAll("\\", "/"),
      text,
      codeLines: lines.filter((line) => line.trim() !== "").length,
      imports: importsOf(code(text)),
    };
  });

/** Path below src of a relative import. */
const targetOf = (source: Source, specifier: string): string =>
  relative(root, resolve(root, dirname(source.path), specifier)).replaceAll("\\", "/");

const breaches = (
  who: (source: Source) => boolean,
  broken: (source: Source, imported: Import, target: string | undefined) => boolean,
): ReadonlyArray<string> =>
  sources
    .filter(who)
    .flatMap((source) =>
      source.imports
        .filter((imported) =>
          broken(
            source,
            imported,
            imported.specifier.startsWith(".") ? targetOf(source, imported.specifier) : undefined,
          ),
        )
        .map((imported) => `${source.path} imports ${imported.specifier}`),
    );

const isEntry = (path: string): boolean => !path.includes("/");
const inCore = (source: Source): boolean => source.path.startsWith("core/");
const isPlugin = (source: Source): boolean => /^(plugins|transports)\//.test(source.path);

describe("architecture", () => {
  it("sees the sources and their imports", () => {
    expect(sources.length).toBeGreaterThan(30);
    expect(sources.flatMap((source) => source.imports).length).toBeGreaterThan(100);
  });

  it("core imports no plugin, transport, default, command or entry file", () => {
    expect(
      breaches(inCore, (_source, _imported, target) => target !== undefined && !target.startsWith("core/")),
    ).toEqual([]);
  });

  it("a plugin or transport imports core, and its own parts, never another plugin", () => {
    // Plugins of one kind in one folder may share files that are no plugin themselves.
    const broken = breaches(isPlugin, (source, _imported, target) => {
      if (target === undefined || target.startsWith("core/")) return false;
      return dirname(target).split("/").slice(0, 2).join("/") !== dirname(source.path).split("/").slice(0, 2).join("/");
    });
    expect(broken).toEqual([]);
  });

  it("only defaults.ts and entry files import plugins and transports", () => {
    const broken = breaches(
      (source) => !isPlugin(source) && !isEntry(source.path) && !source.path.startsWith("cli/"),
      (_source, _imported, target) => target !== undefined && /^(plugins|transports)\//.test(target),
    );
    expect(broken).toEqual([]);
  });

  it("tsyringe's values are used in bridge.ts and di.ts alone, after reflect-metadata", () => {
    const users = sources.filter((source) => source.imports.some((i) => i.specifier === "tsyringe" && !i.typeOnly));
    expect(users.map((source) => source.path).toSorted()).toEqual(["core/bridge.ts", "di.ts"]);
    for (const { text } of users) expect(text).toMatch(/import "reflect-metadata";[^]*from "tsyringe"/);
  });

  it("SDK values are used in engines, credentials, serving and transports alone", () => {
    const allowed = /^(plugins\/(engines|credentials|serving)|transports)\//;
    const isSdk = (specifier: string): boolean => specifier.startsWith("@modelcontextprotocol/");
    expect(
      breaches(
        (source) => !allowed.test(source.path),
        (source, imported) =>
          isSdk(imported.specifier) &&
          !(imported.typeOnly && (source.path === "core/contracts.ts" || source.path.startsWith("cli/"))),
      ),
    ).toEqual([]);
  });

  it("node: modules are used in the stdio transport, endpoint plugins, stores, test servers and commands alone, and lazily below the commands", () => {
    const allowed =
      /^(transports\/stdio[^/]*\.ts|plugins\/(endpoints|stores|serving)\/.*|testing\/servers\/.*|cli\/.*)$/;
    const isNode = (specifier: string): boolean =>
      specifier.startsWith("node:") || specifier.startsWith("@effect/platform-node-shared");
    expect(
      breaches(
        () => true,
        (source, imported) =>
          isNode(imported.specifier) &&
          !imported.typeOnly &&
          !(allowed.test(source.path) && (imported.lazy || source.path.startsWith("cli/"))) &&
          // A file that a permitted one loads lazily may import node: plainly; it is checked by reachability below.
          !allowed.test(source.path),
      ),
    ).toEqual([]);
  });

  it("no entry file reaches a node: module, but for lazily loaded ones", () => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    for (const entry of ["mod.ts", "effect.ts", "plugin.ts", "di.ts", "stores.ts"]) {
      const seen = new Set<string>();
      const queue = [entry];
      for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
        const source = byPath.get(path);
        if (!source || seen.has(path)) continue;
        seen.add(path);
        for (const imported of source.imports.filter((i) => !i.typeOnly && !i.lazy)) {
          expect(`${entry} -> ${path} -> ${imported.specifier}`).not.toMatch(
            /-> (node:|@effect\/platform-node-shared)/,
          );
          if (imported.specifier.startsWith(".")) queue.push(targetOf(source, imported.specifier));
        }
      }
    }
  });

  it("each experimental module of effect has one importer", () => {
    const experimental = new Map<string, Array<string>>();
    for (const source of sources) {
      for (const { specifier, typeOnly } of source.imports) {
        if (typeOnly || !/^effect\/(persistence|cli|ai|workflow|cluster|rpc|sql|eventlog)(\/|$)/.test(specifier))
          continue;
        experimental.set(specifier, [...(experimental.get(specifier) ?? []), source.path]);
      }
    }
    for (const [specifier, importers] of experimental) {
      const outside = importers.filter((path) => !path.startsWith("cli/"));
      expect([specifier, outside.length <= 1 || outside]).toEqual([specifier, true]);
    }
  });

  it("pure files run no effects", () => {
    const pure = ["core/identity.ts", "core/tool-name.ts", "core/pool/classify.ts", "core/errors.ts"];
    for (const source of sources.filter(
      (s) => pure.includes(s.path) || /plugins\/(schemas\/inline-refs|results\/walker)/.test(s.path),
    )) {
      expect(
        source.imports.filter((i) => i.specifier === "effect/Effect" && !i.typeOnly).map(() => source.path),
      ).toEqual([]);
    }
  });

  it("has no import cycles", () => {
    const edges = new Map(
      sources.map((source) => [
        source.path,
        source.imports
          .filter((i) => i.specifier.startsWith(".") && !i.typeOnly && !i.lazy)
          .map((i) => targetOf(source, i.specifier)),
      ]),
    );
    const done = new Set<string>();
    const visit = (path: string, trail: ReadonlyArray<string>): void => {
      if (trail.includes(path)) throw new Error(`cycle: ${[...trail.slice(trail.indexOf(path)), path].join(" -> ")}`);
      if (done.has(path)) return;
      for (const next of edges.get(path) ?? []) visit(next, [...trail, path]);
      done.add(path);
    };
    for (const path of edges.keys()) visit(path, []);
    expect(done.size).toBe(sources.length);
  });

  it("no file is longer than 250 code lines, and the median is at most 110", () => {
    const lengths = sources.map((source) => [source.path, source.codeLines] as const);
    expect(lengths.filter(([, length]) => length > 250)).toEqual([]);
    const sorted = lengths.map(([, length]) => length).toSorted((a, b) => a - b);
    expect(sorted[Math.floor(sorted.length / 2)]).toBeLessThanOrEqual(110);
  });

  it("file names are kebab-case and say what they hold", () => {
    const names = sources.map((source) => source.path.split("/").at(-1)!.replace(/\.ts$/, ""));
    expect(names.filter((name) => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))).toEqual([]);
    expect(names.filter((name) => /(^|-)(utils?|helpers?|common|manager|misc)(-|$)/.test(name))).toEqual([]);
  });
});
