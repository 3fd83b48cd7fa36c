/** A person with a browser, for login tests: follows the authorization URL and brings the redirect back. */
import type { AuthorizationCodeOptions } from "../../src/plugins/credentials/authorization-code.ts";

export interface Person {
  /** URLs of the pages that were opened. */
  readonly opened: Array<URL>;
  readonly host: Required<Pick<AuthorizationCodeOptions, "openBrowser" | "receiveRedirect" | "redirectUri">>;
}

/** Logs in at once; `answer` may change the redirect on its way back, or never bring it (`undefined`). */
export const person = (answer: (redirect: URL) => URL | string | undefined = (redirect) => redirect): Person => {
  const opened: Array<URL> = [];
  let bring!: (redirect: URL | string) => void;
  return {
    opened,
    host: {
      redirectUri: "http://127.0.0.1:43210/callback",
      receiveRedirect: () => new Promise((resolve) => (bring = resolve)),
      openBrowser: async (url) => {
        opened.push(new URL(url));
        const response = await fetch(url, { redirect: "manual" });
        await response.body?.cancel();
        const redirect = answer(new URL(response.headers.get("location")!));
        if (redirect !== undefined) bring(redirect);
      },
    },
  };
};
