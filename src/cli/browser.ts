/** Shows a page in the user's browser. */

/** No shell is involved: the URL comes from a server. On Windows `start` is a word of the shell; this does the same. */
const openers: Readonly<Record<string, readonly [string, ...ReadonlyArray<string>]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Settles when the platform's opener has started; `false` where there is none. */
export const openBrowser = async (url: string): Promise<boolean> => {
  const { spawn } = await import("node:child_process");
  const [command, ...words] = openers[process.platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(command, [...words, url], { detached: true, stdio: "ignore" });
    child.once("error", () => resolve(false));
    // It may outlive this process. What did not start has nothing to let go, and on Deno that throws.
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
};
