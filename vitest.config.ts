import { availableParallelism } from "node:os";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A crowded CI machine may starve a real process of its time now and then; a real fault fails every time.
    retry: process.env["CI"] ? 2 : 0,
    // Half of the time the tests wait for processes of theirs: more workers than cores fill it.
    maxWorkers: Math.max(4, availableParallelism()),
  },
});
export default config;
