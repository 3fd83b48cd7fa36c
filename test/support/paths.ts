import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The shared test data beside the checkout, where it exists: recorded catalogs, schema suites. */
export const sharedData = (name: string): string | undefined => {
  const path = fileURLToPath(new URL(`../../../shared/${name}`, import.meta.url));
  return existsSync(path) ? path : undefined;
};

/** A new empty folder for one test. */
export const scratch = (): string => mkdtempSync(join(tmpdir(), "nucleo-mcp-"));

/** Waits until the condition holds; a test that waits for ever fails by its own time limit. */
export const until = async (condition: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 5));
};
