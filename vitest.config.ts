import { availableParallelism } from "node:os";
import { defineConfig, type ViteUserConfig } from "vitest/config";

const config: ViteUserConfig = defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A crowded CI machine may starve a real process of its time once; a real fault fails twice.
    retry: process.env["CI"] ? 1 : 0,
    // Half of the time the tests wait for processes of theirs: more workers than cores fill it.
    maxWorkers: Math.max(4, availableParallelism()),
  },
});
export default config;
