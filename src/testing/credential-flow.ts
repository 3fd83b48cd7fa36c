/** The contract of `CredentialFlow`: what a transport relies on, and what no secret may do. */
import type { Authorization, AuthorizeRequest, CredentialFlow } from "../core/contracts.ts";
import type { Credential } from "../core/endpoint.ts";
import { isMcpError } from "../core/errors.ts";
import { answerOf, type ContractSuite, demand, demandSame, mcpErrorOf } from "./contract-case.ts";

export interface CredentialFlowContractOptions<C extends Credential> {
  readonly flow: CredentialFlow<C>;
  /** A credential that works, each time of another identity, because flows may remember what was refused. */
  readonly credential: () => C | Promise<C>;
  /** URL of a protected server that accepts the credential; https, or http on loopback. */
  readonly url: () => string | Promise<string>;
  /** Secrets that must not show anywhere but in the headers. */
  readonly secrets?: ReadonlyArray<string>;
}

const json = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** All that a log or an error report could show of a value. */
const visible = (value: unknown): string => {
  const error = value instanceof Error ? `${value.message}\n${value.stack ?? ""}\n${visible(value.cause)}` : "";
  return [String(value), JSON.stringify(value) ?? "", error].join("\n");
};

/** Cases every credential flow has to pass. */
export const credentialFlowContract = <C extends Credential>(
  options: CredentialFlowContractOptions<C>,
): ContractSuite => {
  const { flow, secrets = [] } = options;

  const guarded = (what: string, value: unknown): void => {
    for (const secret of secrets) demand(!visible(value).includes(secret), `${what} shows a secret`);
  };
  const ask = (credential: C, url: string, rejected?: AuthorizeRequest["rejected"]): Promise<Authorization> =>
    answerOf<Authorization>(flow.kind, () =>
      flow.authorize(credential, { url, method: "POST", server: "contract", rejected }),
    );

  /** Sends real requests until the server takes one, three refusals at most, as a transport does. */
  const accepted = async (credential: C, url: string): Promise<Authorization> => {
    let rejected: AuthorizeRequest["rejected"];
    for (let attempt = 0; attempt < 4; attempt++) {
      const authorization = await ask(credential, url, rejected);
      const response = await fetch(url, { method: "POST", headers: { ...json, ...authorization.headers }, body: ping });
      const { status, headers } = response;
      await response.text();
      if (status !== 401 && status !== 403) return authorization;
      rejected = {
        status,
        challenge: headers.get("www-authenticate") ?? undefined,
        nonce: headers.get("dpop-nonce") ?? undefined,
        authorization,
      };
    }
    demand(false, "the server refused it four times");
  };

  /** Takes one request, then refuses whatever the flow answers; it has to give up within four answers. */
  const refusedForEver = async (status: 401 | 403, challenge: string | undefined): Promise<void> => {
    const credential = await options.credential();
    const url = await options.url();
    let authorization = await accepted(credential, url);
    for (let answers = 0; answers < 4; answers++) {
      try {
        authorization = await ask(credential, url, { status, challenge, authorization });
      } catch (cause) {
        demand(isMcpError(cause), `it gives up with ${String(cause)}, which is no McpError`);
        guarded("its error", cause);
        return;
      }
    }
    demand(false, "it answers for ever, and never says that the server refuses");
  };

  return [
    {
      name: "serves credentials of its kind, which show no secret",
      run: async () => {
        const credential = await options.credential();
        demandSame("kind", flow.kind, credential.kind);
        demand(typeof credential.user === "string" && credential.user !== "", "the credential says no user");
        demandSame("fault", credential.validate?.(), undefined);
        guarded("the credential", credential);
      },
    },
    {
      name: "gets a request accepted, by headers that HTTP can carry",
      run: async () => {
        const { headers } = await accepted(await options.credential(), await options.url());
        demand(Object.keys(headers).length > 0, "it answers no header");
        for (const [name, value] of Object.entries(headers)) {
          demand(headerName.test(name), `'${name}' is no header name`);
          demand(typeof value === "string" && !/[\r\n\0]/.test(value), `header ${name} holds no usable value`);
        }
      },
    },
    {
      name: "answers each request anew, also ten at once, and hides the headers from logs",
      run: async () => {
        const credential = await options.credential();
        const url = await options.url();
        await accepted(credential, url);
        const answers = await Promise.all(Array.from({ length: 10 }, () => ask(credential, url)));
        demandSame("different answers", new Set(answers).size, 10);
        guarded("an authorization", answers[0]);
      },
    },
    {
      name: "gives up with a typed error when every answer is refused with 401",
      run: () => refusedForEver(401, 'Bearer error="invalid_token"'),
    },
    {
      name: "gives up with a typed error when every answer is refused with 403",
      run: () => refusedForEver(403, undefined),
    },
    {
      name: "gives up with a typed error when ever more scope is wanted",
      run: () => refusedForEver(403, 'Bearer error="insufficient_scope", scope="a b c"'),
    },
    {
      name: "sends nothing over plain http to another host",
      run: async () => {
        const error = await mcpErrorOf(
          "a plain http URL",
          ask(await options.credential(), "http://mcp.example.com/mcp"),
        );
        guarded("its error", error);
      },
    },
  ];
};
