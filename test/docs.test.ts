/** The documents say what the code does: settings, errors, ports, links, the README's size. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import * as ConfigProvider from "effect/ConfigProvider";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as errors from "../src/core/errors.ts";
import { type ListPort, listPorts, singlePorts } from "../src/core/ports.ts";
import { resolveSettings } from "../src/core/resolve-settings.ts";
import { defaults } from "../src/defaults.ts";
import * as testing from "../src/testing.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const markdown = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join(folder, name));
const documents = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", ...markdown("docs")];

/** Cells of the rows whose first cell is code. */
const rowsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text
    .split("\n")
    .filter((line) => /^\|\s*`/.test(line))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );

const resolved = (environment: Record<string, string> = {}) =>
  Effect.runSync(
    Effect.provide(resolveSettings(), ConfigProvider.layer(ConfigProvider.fromEnv({ env: environment }))),
  ) as unknown as Record<string, number | string>;

const bytes: Readonly<Record<string, number>> = { KiB: 1024, MiB: 1024 * 1024 };

/** A default as the table words it, in the setting's own unit. */
const valueOf = (text: string): number | string => {
  const quoted = /^`"(.*)"`$/.exec(text);
  if (quoted) return quoted[1]!;
  const [amount, unit] = text.replaceAll(",", "").split(" ");
  if (unit === undefined) return Number(amount);
  if (unit in bytes) return Number(amount) * bytes[unit]!;
  const words: Readonly<Record<string, "millis" | "seconds" | "minutes">> = {
    ms: "millis",
    s: "seconds",
    min: "minutes",
  };
  return Duration.toMillis(Duration.fromInputUnsafe(`${Number(amount)} ${words[unit]!}`));
};

describe("docs/settings.md", () => {
  const rows = rowsOf(read("docs/settings.md"));
  const settings = resolved();

  it("has a row for each setting, with its default", () => {
    const shown = Object.fromEntries(
      rows.map(([name, value]) => [name!.replaceAll("`", ""), value === "`stdioPoolMax`" ? 32 : valueOf(value!)]),
    );
    expect(shown).toEqual(settings);
  });

  it("names the variables that the runtime reads", () => {
    for (const [name, , , , variable] of rows) {
      const key = name!.replaceAll("`", "");
      const value = key === "era" ? "modern" : "7";
      const read = resolved({ [variable!.replaceAll("`", "")]: value });
      expect([key, String(read[key])]).toEqual([key, value]);
    }
  });
});

describe("docs/errors.md", () => {
  const sections = new Map(
    read("docs/errors.md")
      .split(/^### /m)
      .slice(1)
      .map((section) => [section.split("\n", 1)[0]!, section.slice(section.indexOf("\n"))]),
  );
  const classes = Object.keys(errors).filter((name) => /^[A-Z]/.test(name) && name !== "McpError");

  it("has a section for each error", () => {
    expect([...sections.keys()].toSorted()).toEqual(classes.toSorted());
  });

  it("names the fields of each error, and no others", () => {
    const source = ["errors.ts", "artifact/artifact-errors.ts", "pinning/tool-quarantined.ts"]
      .map((path) => read(`src/core/${path}`))
      .join("");
    const processEnd = ["exitCode", "signal", "stderrTail"];
    const members = (text: string) =>
      [...text.replaceAll(/\/\*\*.*?\*\//gs, "").matchAll(/(\w+)\??:/g)].map(([, name]) => name!);
    const connectFailed = /interface ConnectFailedFields[^{]*\{(.*?)\n\}/s.exec(source)![1]!;
    for (const name of classes) {
      const declared = new RegExp(`const ${name}Base: McpErrorClass<\\s*"${name}",?(.*?)> ?=`, "s").exec(source)![1]!;
      const fields = [
        ...members(declared.includes("ConnectFailedFields") ? connectFailed : declared),
        ...(/ProcessEnd|ConnectFailedFields/.test(declared) ? processEnd : []),
      ];
      const said = /Fields: (.*?)\.\n/s.exec(sections.get(name)!)![1]!.replaceAll(/\([^)]*\)/g, "");
      const documented = [...said.matchAll(/`(\w+)`/g)].map(([, field]) => field!);
      expect([name, documented.toSorted()]).toEqual([name, fields.toSorted()]);
    }
  });
});

describe("docs/plugins.md", () => {
  const rows = rowsOf(read("docs/plugins.md"));
  const cell = (text: string) => text.replaceAll("`", "");

  it("has a row for each port, with its key", () => {
    const shown = rows.map(([name, , key, holds]) => [cell(name!), holds, cell(key!)]);
    const probe = new Proxy({}, { get: (_target, property) => property });
    const list = (port: ListPort<any>) => [port.name, "list", port.keyOf?.(probe) ?? "none"];
    expect(shown.toSorted()).toEqual(
      [...listPorts.map(list), ...singlePorts.map((port) => [port.name, "one", ""])].toSorted(),
    );
  });

  it("shows the example of faulty servers as it runs", () => {
    const [, shown] = /09-faulty-servers\.ts`:\n\n```ts\n(.*?)\n```/s.exec(read("docs/plugins.md"))!;
    const [, ...lines] = read("examples/09-faulty-servers.ts").trimEnd().split("\n");
    const asInstalled = (text: string) =>
      text.replace('"../src/mod.ts"', '"nucleo-mcp"').replace('"../src/testing.ts"', '"nucleo-mcp/testing"');
    expect(shown).toBe(asInstalled(lines.join("\n")));
  });

  it("names suites that exist, and all of them", () => {
    const named = rows.map((row) => cell(row[5]!)).filter((name) => name !== "");
    expect(named.toSorted()).toEqual(
      Object.keys(testing)
        .filter((name) => name.endsWith("Contract"))
        .toSorted(),
    );
  });
});

/** Fields that the interfaces of a file declare, by the interface's name. */
const fieldsOf = (path: string): Map<string, ReadonlyArray<string>> =>
  new Map(
    [
      ...read(path)
        .replaceAll(/\/\*\*.*?\*\//gs, "")
        .matchAll(/interface (\w+)[^{]*\{(.*?)\n\}/gs),
    ].map(([, name, body]) => [name!, [...body!.matchAll(/^ {2}readonly (\w+)\??:/gm)].map(([, field]) => field!)]),
  );

const codeIn = (text: string): ReadonlyArray<string> => [...text.matchAll(/`(\w+)/g)].map(([, word]) => word!);

describe("docs/testing.md", () => {
  const [suites, programs] = read("docs/testing.md").split("## Fault programs") as [string, string];
  const steps = programs.slice(programs.indexOf("| step "));

  it("has the options of each suite, and which of them may be left out", () => {
    const files = readdirSync(join(root, "src/testing")).filter((name) => name.endsWith(".ts"));
    const source = files.map((name) => read(`src/testing/${name}`)).join("\n");
    const declared = [...source.matchAll(/interface (\w+)ContractOptions[^{]*\{(.*?)\n\}/gs)].map(([, name, body]) => {
      const fields = [...body!.matchAll(/^ {2}readonly (\w+)(\??):/gm)];
      const named = (mark: string) => fields.filter(([, , optional]) => optional === mark).map(([, field]) => field!);
      return [`${name![0]!.toLowerCase()}${name!.slice(1)}Contract`, named("").toSorted(), named("?").toSorted()];
    });
    const shown = rowsOf(suites).map(([suite, needs, may]) => [
      ...codeIn(suite!),
      codeIn(needs!).toSorted(),
      codeIn(may!).toSorted(),
    ]);
    expect(shown.toSorted()).toEqual(declared.toSorted());
  });

  it("has every step, under the type that declares it", () => {
    const source = ["fault-program", "stdio-program", "http-program"]
      .map((name) => read(`src/testing/servers/${name}.ts`))
      .join("\n")
      .replaceAll(/\/\*\*.*?\*\//gs, "");
    const declared = ["AnsweringStep", "ActingStep", "ProcessStep", "HttpOnlyStep", "Step"].flatMap((type) =>
      [...new RegExp(`type ${type} =(.*?);\n\n`, "s").exec(`${source}\n`)![1]!.matchAll(/\| \{ readonly (\w+)/g)].map(
        ([, step]) => `${type} ${step}`,
      ),
    );
    const shown = rowsOf(steps).flatMap(([step, type]) =>
      codeIn(step!.split(", with")[0]!).map((name) => `${codeIn(type!)[0]} ${name}`),
    );
    expect(shown.toSorted()).toEqual(declared.toSorted());
  });

  it("has the fields of programs", () => {
    for (const [file, name] of [
      ["fault-program", "ServerDescription"],
      ["stdio-program", "StdioProgram"],
      ["http-program", "HttpProgram"],
      ["http-mcp", "McpBehaviour"],
    ] as const) {
      const row = rowsOf(programs).find(([type]) => type === `\`${name}\``)!;
      for (const field of fieldsOf(`src/testing/servers/${file}.ts`).get(name)!)
        expect([name, field, codeIn(row[1]!).includes(field)]).toEqual([name, field, true]);
    }
  });
});

describe("docs/gateway.md", () => {
  it("has every option of a gateway, and where it is given", () => {
    const given = (path: string, name: string, to: string) =>
      fieldsOf(`src/plugins/serving/${path}.ts`)
        .get(name)!
        .map((field) => [field, to]);
    const declared = [
      ...given("served-runtime", "ServingOptions", "`serve`"),
      ...given("listen", "ListenOptions", "`listen`"),
      ...given("http-handler", "HttpOptions", "`listen`, `http`"),
      ...given("http-guard", "GuardOptions", "`listen`, `http`"),
    ];
    const shown = rowsOf(read("docs/gateway.md")).map(([option, to]) => [codeIn(option!)[0], to]);
    expect(shown.toSorted()).toEqual(declared.toSorted());
  });
});

describe("docs/command-line.md", () => {
  it("has every flag, and no others", () => {
    const source = `${read("src/cli/command-line.ts")}${read("src/cli/flags.ts")}`;
    const declared = [...source.matchAll(/(?:Flag\.[A-Z]\w+|duration)\(\s*"([\w-]+)"/g)].map(([, flag]) => flag!);
    expect(declared.length).toBeGreaterThan(15);
    const rows = rowsOf(read("docs/command-line.md")).filter(([first]) => first!.startsWith("`--"));
    const shown = rows.flatMap(([first]) => [...first!.matchAll(/`--(?:no-)?([\w-]+)`/g)].map(([, flag]) => flag!));
    expect(shown.toSorted()).toEqual([...declared, "help", "version"].toSorted());
  });
});

describe("README.md", () => {
  const text = read("README.md");

  it("has at most 200 lines and the two commands", () => {
    expect(text.trimEnd().split("\n").length).toBeLessThanOrEqual(200);
    expect(text).toContain("npm ci && npm start");
    expect(text).toContain("npm ci && npm test");
  });

  it("names the version of effect that the package has", () => {
    const { dependencies } = JSON.parse(read("package.json"));
    expect(text).toContain(`npm install effect@${dependencies.effect}`);
  });

  it("names every built-in transport and engine in the table of ports", () => {
    const row = (name: string) =>
      rowsOf(text)
        .find(([first]) => first === `\`${name}\``)
        ?.join(" ") ?? "";
    for (const port of ["transports", "engines"]) {
      for (const plugin of defaults.get(port) as ReadonlyArray<{ readonly kind?: string; readonly era?: string }>)
        expect(row(port)).toContain(`\`${plugin.kind ?? plugin.era}\``);
    }
    const ports = [...listPorts, ...singlePorts].map(({ name }) => name);
    const named = rowsOf(text)
      .map(([first]) => first!.replaceAll("`", ""))
      .filter((name) => ports.includes(name));
    expect(named.length).toBeGreaterThan(8);
  });

  it("tells the path of a call in ten steps, by files that exist", () => {
    const steps = text.split("\n").filter((line) => /^\|\s*\d+\. /.test(line));
    expect(steps.map((line) => Number(/\d+/.exec(line)![0]))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for (const [, path] of steps.join("\n").matchAll(/`([a-z-]+(?:\.ts|\/))`/g))
      expect([path, existsSync(join(root, "src/core", path!))]).toEqual([path, true]);
    for (const [, tag] of steps.join("\n").matchAll(/`([A-Z]\w+)`/g)) expect(Object.keys(errors)).toContain(tag);
  });
});

describe("documents", () => {
  it.each(documents)("%s links to what exists, and holds no address of this machine", (path) => {
    const text = read(path);
    for (const [, target] of text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)) {
      if (/^https?:/.test(target!)) continue;
      expect([target, existsSync(join(root, dirname(path), target!))]).toEqual([target, true]);
    }
    for (const [, target] of text.matchAll(/`((?:examples|docs|src|test)\/[\w./-]+\.(?:ts|md))`/g))
      expect([target, existsSync(join(root, target!))]).toEqual([target, true]);
    expect(text).not.toMatch(/\/(?:home|root|tmp|work)\//);
  });

  it("decisions are records: question, choice, why, what would change our mind", () => {
    for (const path of markdown("docs/decisions")) {
      const text = read(path);
      for (const part of ["**Question.**", "**Choice.**", "**Why", "**Would change our mind.**"])
        expect([path, part, text.includes(part)]).toEqual([path, part, true]);
    }
  });
});
