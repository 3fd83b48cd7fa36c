/** `npm run bench [name …]`: runs each `*.bench.ts` of this folder in a process of its own. */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const suffix = ".bench.ts";
const names = readdirSync(new URL(".", import.meta.url))
  .filter((file) => file.endsWith(suffix))
  .map((file) => file.slice(0, -suffix.length))
  .toSorted();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !names.includes(name));
if (unknown.length > 0) {
  console.error(`No bench '${unknown.join("', '")}'. There are: ${names.join(", ")}.`);
  process.exit(2);
}
for (const name of wanted.length > 0 ? wanted : names) {
  console.log(`${name} (Node ${process.versions.node})`);
  const file = fileURLToPath(new URL(name + suffix, import.meta.url));
  const { status } = spawnSync(process.execPath, ["--expose-gc", file], { stdio: "inherit" });
  if (status !== 0) process.exitCode = 1;
}
