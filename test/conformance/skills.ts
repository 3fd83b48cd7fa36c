/** Loading a skill as the skills extension has hosts do it (SEP-2640): nothing is used that was not verified. */
import type { McpClient } from "../../src/mod.ts";

type Json = Record<string, any>;

const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> => {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return `sha256:${Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
};

const read = async (client: McpClient, { uri, digest, size }: Json): Promise<string> => {
  const { contents } = (await client.readResource(uri)) as Json;
  const text: string = contents[0].text;
  const bytes = new TextEncoder().encode(text);
  if (bytes.length !== size) throw new Error(`${uri} has ${bytes.length} bytes instead of ${size}`);
  if ((await sha256(bytes)) !== digest) throw new Error(`${uri} is not what its digest says`);
  return text;
};

/** The plain `key: value` lines between the first two `---`. */
const frontmatterOf = (text: string): Json =>
  Object.fromEntries(
    (/^---\n(.*?)\n---/s.exec(text)?.[1] ?? "").split("\n").map((line) => {
      const at = line.indexOf(":");
      return [line.slice(0, at), line.slice(at + 1).trim()];
    }),
  );

/** Loads the first skill and then its files. */
export const loadSkill = async (client: McpClient): Promise<void> => {
  const { skills } = (await client.request("skills/list")) as Json;
  const [skill] = skills;
  const [main, ...others] = skill.resources;
  const frontmatter = frontmatterOf(await read(client, main));
  const names = new Set([...Object.keys(frontmatter), ...Object.keys(skill.frontmatter)]);
  for (const name of names)
    if (frontmatter[name] !== skill.frontmatter[name])
      throw new Error(`${main.uri} says another ${name} than the list`);
  for (const file of others) await read(client, file);
};
