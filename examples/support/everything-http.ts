/** Starts server-everything over Streamable HTTP on a free loopback port, as some other party would. */
import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { nodeBinary, script } from "./servers.ts";

const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.on("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });

/** Settles when the server listens; disposing of it ends the process. */
export const startEverythingHttp = async (): Promise<{ readonly url: string } & AsyncDisposable> => {
  const port = await freePort();
  const child = spawn(nodeBinary, [script("server-everything"), "streamableHttp"], {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    env: { PATH: process.env["PATH"] ?? "", PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  await new Promise<void>((resolve, reject) => {
    child.stderr.on("data", (chunk: Uint8Array) => {
      if (new TextDecoder().decode(chunk).includes("listening")) resolve();
    });
    child.once("error", reject);
    child.once("exit", () => reject(new Error("server-everything ended before it listened")));
  });
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await exited;
    },
  };
};
