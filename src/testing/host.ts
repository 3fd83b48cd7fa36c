/** The contracts of what a host gives: `HostHandlers`, `CatalogPolicy`, `ErrorPresenter`. */
import type {
  CatalogPolicy,
  CatalogTool,
  ErrorPresenter,
  HostHandlers,
  HostRequestContext,
} from "../core/contracts.ts";
import { CircuitOpen, InvalidArguments, type McpError, PluginFailed, RequestTimeout } from "../core/errors.ts";
import { answerOf, type ContractSuite, demand, frozen } from "./contract-case.ts";

type Form = NonNullable<NonNullable<HostHandlers["elicitation"]>["form"]>;
type Url = NonNullable<NonNullable<HostHandlers["elicitation"]>["url"]>;
type Sampling = NonNullable<HostHandlers["sampling"]>;

export interface HostHandlersContractOptions {
  readonly handlers: HostHandlers;
  /** What servers might ask. Default: a short question of each kind that the handlers serve. */
  readonly sampling?: Parameters<Sampling>[0];
  readonly form?: Parameters<Form>[0];
  readonly url?: Parameters<Url>[0];
}

const question: Parameters<Sampling>[0] = {
  messages: [{ role: "user", content: { type: "text", text: "Say yes." } }],
  maxTokens: 16,
};
const nameForm: Parameters<Form>[0] = {
  message: "What is your name?",
  requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
};
const visit: Parameters<Url>[0] = {
  mode: "url",
  message: "Please log in.",
  url: "https://example.com/login",
  elicitationId: "contract",
};

const context = (signal: AbortSignal = new AbortController().signal): HostRequestContext => ({
  endpoint: { transportType: "contract", endpointId: "contract:endpoint", name: "contract" },
  name: "contract",
  signal,
});

/** Cases for the handlers a host has; what it does not handle is not tested. */
export const hostHandlersContract = (options: HostHandlersContractOptions): ContractSuite => {
  const { sampling, elicitation, roots } = options.handlers;
  const actions = ["accept", "decline", "cancel"];
  const { form, url } = elicitation ?? {};
  return [
    ...(sampling
      ? [
          {
            name: "sampling answers a message of the assistant, and the model that wrote it",
            run: async () => {
              const result = await answerOf("sampling", () => sampling(options.sampling ?? question, context()));
              demand(result.role === "assistant", `the role is '${String(result.role)}'`);
              demand(typeof result.model === "string" && result.model !== "", "it names no model");
              demand(typeof result.content === "object" && result.content !== null, "it has no content");
            },
          },
        ]
      : []),
    ...(form
      ? [
          {
            name: "elicitation by form answers an action, and on accept what the form requires",
            run: async () => {
              const asked = options.form ?? nameForm;
              const { action, content } = await answerOf("elicitation", () => form(frozen(asked), context()));
              demand(actions.includes(action), `the action is '${String(action)}'`);
              const { properties, required = [] } = asked.requestedSchema;
              const given = { ...content };
              const missing = required.filter((name) => !(name in given) && properties[name]?.default === undefined);
              demand(action !== "accept" || missing.length === 0, `it accepts without ${missing.join(", ")}`);
            },
          },
        ]
      : []),
    ...(url
      ? [
          {
            name: "elicitation by URL answers an action and no content",
            run: async () => {
              const { action, content } = await answerOf("elicitation", () => url(options.url ?? visit, context()));
              demand(actions.includes(action), `the action is '${String(action)}'`);
              demand(content === undefined, "it answers content; there is no form");
            },
          },
        ]
      : []),
    ...(roots
      ? [
          {
            name: "roots are file URIs",
            run: async () => {
              const found = await answerOf("roots", () => roots(context()));
              for (const { uri } of found)
                demand(uri.startsWith("file://") && URL.canParse(uri), `'${uri}' is no file URI`);
            },
          },
        ]
      : []),
  ];
};

export interface CatalogPolicyContractOptions {
  readonly policy: CatalogPolicy;
  /** Tools to decide on. Default: one without and one with annotations. */
  readonly tools?: ReadonlyArray<CatalogTool>;
}

const someTools: ReadonlyArray<CatalogTool> = [
  { handle: "files", name: "read", description: undefined, annotations: undefined },
  { handle: "files", name: "delete all", description: "deletes", annotations: { destructiveHint: true } },
];

/** Cases every catalog policy has to pass. */
export const catalogPolicyContract = (options: CatalogPolicyContractOptions): ContractSuite => [
  {
    name: "keeps, hides or renames each tool, the same each time",
    run: async () => {
      for (const tool of options.tools ?? someTools) {
        const decision = options.policy.decide(frozen({ ...tool }));
        const named = typeof decision === "object" && typeof decision.rename === "string" && decision.rename !== "";
        demand(decision === "keep" || decision === "hide" || named, `it decides ${JSON.stringify(decision)}`);
        const again = JSON.stringify(options.policy.decide(tool));
        demand(again === JSON.stringify(decision), `it decides on '${tool.name}' now so, now so`);
      }
    },
  },
];

export interface ErrorPresenterContractOptions {
  readonly presenter: ErrorPresenter;
}

const someErrors: ReadonlyArray<McpError> = [
  new RequestTimeout({ server: "files", method: "tools/call", kind: "idle", timeout: 20_000 }),
  new CircuitOpen({ server: "files", endpointId: "x", retryAt: 0, retryAfter: 1000 }, new Error("cause")),
  new InvalidArguments({ tool: "read", issues: [{ pointer: "/path", message: "is missing" }] }),
  new PluginFailed({ plugin: "contract", reason: "" }),
];

/** Cases every error presenter has to pass. */
export const errorPresenterContract = ({ presenter }: ErrorPresenterContractOptions): ContractSuite => [
  {
    name: "words every error",
    run: async () => {
      for (const error of someErrors) {
        const text = presenter.present(error);
        demand(typeof text === "string" && text.trim() !== "", `it says nothing of ${error.name}`);
      }
    },
  },
];
