/** A lock between processes: a file that only one of them can create. What a killed process left is broken. */
import { isRunning } from "./gateway-record.ts";

/** No holder needs longer than this, ms; process ids are used again. */
const holdMax = 60_000;
const breakMax = 10_000;

const files = () => import("node:fs/promises");
const codeOf = (cause: unknown): unknown => (cause as { readonly code?: unknown }).code;

/** Creates the file with our process id; false when there is one already. */
const create = async (path: string): Promise<boolean> => {
  const { writeFile } = await files();
  try {
    await writeFile(path, String(process.pid), { flag: "wx", mode: 0o600 });
    return true;
  } catch (cause) {
    if (codeOf(cause) === "EEXIST") return false;
    throw cause;
  }
};

const isStale = async (path: string, limit: number): Promise<boolean> => {
  const { readFile, stat } = await files();
  try {
    const [text, { mtimeMs }] = await Promise.all([readFile(path, "utf8"), stat(path)]);
    // An empty one is being written this moment.
    return Date.now() - mtimeMs > limit || (text !== "" && !isRunning(Number(text)));
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") return false;
    throw cause;
  }
};

/**
 * Takes the lock and answers how to give it back; undefined when another process holds
 * it. A stale lock is broken under a lock of its own and looked at again there, so that
 * nobody removes the lock that another one has just taken.
 */
export const takeLock = async (path: string): Promise<(() => Promise<void>) | undefined> => {
  const { rm } = await files();
  if (await create(path)) return () => rm(path, { force: true });
  if (!(await isStale(path, holdMax))) return undefined;
  const breaking = `${path}.break`;
  if (await create(breaking)) {
    if (await isStale(path, holdMax)) await rm(path, { force: true });
    await rm(breaking, { force: true });
  } else if (await isStale(breaking, breakMax)) await rm(breaking, { force: true });
  return undefined;
};
