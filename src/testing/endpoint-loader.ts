/** The contract of `EndpointLoader`. */
import type { EndpointLoader } from "../core/contracts.ts";
import type { McpEndpoint } from "../core/endpoint.ts";
import { answerOf, type ContractSuite, demand, demandSame, mcpErrorOf } from "./contract-case.ts";

export interface EndpointLoaderContractOptions {
  readonly loader: EndpointLoader;
  /** A source, and the handles found there, in order. */
  readonly good: { readonly source: string; readonly handles: ReadonlyArray<string> };
  /** Sources that have to be refused, by what is wrong with them. */
  readonly bad: Readonly<Record<string, string>>;
  /** Values of the sources that must not show in errors, ids or labels. */
  readonly secrets?: ReadonlyArray<string>;
}

const idOf = ({ endpoint }: { readonly endpoint: McpEndpoint }): string => endpoint.endpointId;

/** Cases every endpoint loader has to pass. */
export const endpointLoaderContract = (options: EndpointLoaderContractOptions): ContractSuite => {
  const { loader, good, bad, secrets = [] } = options;
  const load = (source: string) => answerOf("load", () => loader.load(source));
  const guarded = (what: string, text: string): void => {
    for (const secret of secrets) demand(!text.includes(secret), `${what} shows a secret`);
  };
  return [
    {
      name: "has a kind",
      run: async () => demand(typeof loader.kind === "string" && loader.kind !== "", "the kind is empty"),
    },
    {
      name: "loads endpoints that can be attached, each under a handle of its own",
      run: async () => {
        const loaded = await load(good.source);
        demandSame(
          "handles",
          loaded.map(({ handle }) => handle),
          good.handles,
        );
        demandSame("different handles", new Set(loaded.map(({ handle }) => handle)).size, loaded.length);
        for (const { handle, endpoint } of loaded) {
          demand(endpoint.endpointId !== "" && endpoint.transportType !== "", `'${handle}' has no id or transport`);
          demandSame(`the fault of '${handle}'`, endpoint.validate?.(), undefined);
          guarded(`endpoint '${handle}'`, JSON.stringify([endpoint, endpoint.endpointId, endpoint.name]));
        }
      },
    },
    {
      name: "answers equal ids for the same source",
      run: async () => {
        const [once, again] = [await load(good.source), await load(good.source)];
        demandSame("ids", again.map(idOf), once.map(idOf));
      },
    },
    ...Object.entries(bad).map(([what, source]) => ({
      name: `refuses ${what} with a typed error`,
      run: async () => guarded("its error", (await mcpErrorOf(what, load(source))).message),
    })),
  ];
};
