/**
 * Resources, prompts and completion of all attached servers, for one client after
 * another. Prompts are named as tools are, `<handle>__<prompt>`. A resource keeps its
 * URI, which is the server's own; where two servers offer the same, the first attached
 * one answers.
 */
import * as Duration from "effect/Duration";
import { isRecord } from "../../core/artifact/json.ts";
import type { McpEvent } from "../../core/events.ts";
import type { PromiseClient, PromiseConnector, PromiseRequestOptions } from "../../core/promise.ts";
import { exposedName } from "../../core/tool-name.ts";
import { paged } from "./served-tools.ts";
import type { ServedRuntime, ServingOptions } from "./served-runtime.ts";
import { rpcError, type Wire } from "./wire.ts";

type Items = ReadonlyArray<Wire>;

/** What one server offers. */
interface Offer {
  /** Whether it has resources at all, listed or not. */
  readonly hasResources: boolean;
  readonly resources: Items;
  readonly templates: Items;
  readonly prompts: Items;
}

const nothing: Offer = { hasResources: false, resources: [], templates: [], prompts: [] };

export interface ServedFeatures {
  /** Answers a request; undefined for methods of other features. */
  readonly serve: (method: string, params: Wire, options: PromiseRequestOptions) => Promise<Wire> | undefined;
  /** The server that offers a resource. Rejects with -32002 when none does. */
  readonly ownerOf: (uri: string) => Promise<PromiseConnector>;
  /** Forgets lists that changed. */
  readonly onEvent: (event: McpEvent) => void;
}

/** Whether a URI may come of a template (RFC 6570), by its literal parts. */
const fits = (template: unknown, uri: string): boolean => {
  const literals = String(template).split(/\{[^}]*\}/);
  const pattern = literals.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("(.*)");
  return new RegExp(`^${pattern}$`).test(uri);
};

const text = (value: unknown, what: string): string => {
  if (typeof value === "string") return value;
  throw rpcError(-32602, `Give the ${what}`);
};

export const makeServedFeatures = (runtime: ServedRuntime, options: ServingOptions): ServedFeatures => {
  const patience = Duration.toMillis(Duration.fromInputUnsafe(options.listPatience ?? "5 seconds"));
  /** By endpoint id, so that listing wakes no idle server. */
  const offers = new Map<string, Promise<Offer>>();

  const withClient = async <A>(
    { endpoint }: PromiseConnector,
    use: (client: PromiseClient) => Promise<A>,
  ): Promise<A> => {
    await using client = await runtime.client(endpoint);
    return await use(client);
  };

  const list = (connector: PromiseConnector): Promise<Offer> =>
    withClient(connector, async (client) => {
      const [resources, templates, prompts] = await Promise.all([
        client.listResources(),
        client.listResourceTemplates(),
        client.listPrompts(),
      ]);
      return { hasResources: client.capabilities.resources !== undefined, resources, templates, prompts };
    });

  /** A server that fails or is slow offers nothing now, and is asked again the next time. */
  const offerOf = async (connector: PromiseConnector): Promise<Offer> => {
    const { endpointId } = connector.endpoint;
    const known = offers.get(endpointId);
    const asked = known ?? list(connector);
    if (!known) {
      offers.set(endpointId, asked);
      asked.catch(() => offers.delete(endpointId));
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLong = new Promise<Offer>((resolve) => (timer = setTimeout(resolve, patience, nothing)));
    return Promise.race([asked.catch(() => nothing), tooLong]).finally(() => clearTimeout(timer));
  };

  const all = async <A>(
    pick: (offer: Offer, connector: PromiseConnector) => ReadonlyArray<A>,
  ): Promise<ReadonlyArray<A>> => {
    const connectors = runtime.connectors();
    const found = await Promise.all(connectors.map(offerOf));
    return found.flatMap((offer, i) => pick(offer, connectors[i]!));
  };

  const ownerOf = async (uri: string): Promise<PromiseConnector> => {
    const servers = await all(({ hasResources, resources, templates }, connector) => {
      const listed = resources.some((resource) => resource["uri"] === uri);
      const templated = templates.some(({ uriTemplate }) => uriTemplate === uri || fits(uriTemplate, uri));
      return hasResources ? [{ connector, listed, templated }] : [];
    });
    // What nobody lists may still exist, where only one server can have it.
    const only = servers.length === 1 ? servers[0] : undefined;
    const owner = servers.find(({ listed }) => listed) ?? servers.find(({ templated }) => templated) ?? only;
    if (!owner) throw rpcError(-32002, "Resource not found", { uri });
    return owner.connector;
  };

  const ownerOfPrompt = async (name: unknown) => {
    const owners = await all(({ prompts }, connector) =>
      prompts.flatMap((prompt) =>
        exposedName(connector.handle, String(prompt["name"])) === name
          ? [{ connector, prompt: String(prompt["name"]) }]
          : [],
      ),
    );
    if (!owners[0]) throw rpcError(-32602, `There is no prompt '${String(name)}'`);
    return owners[0];
  };

  const complete = async (params: Wire, given: PromiseRequestOptions): Promise<Wire> => {
    const ref = isRecord(params["ref"]) ? params["ref"] : {};
    if (ref["type"] === "ref/resource") {
      const connector = await ownerOf(String(ref["uri"]));
      return withClient(connector, (client) => client.complete(params, given));
    }
    const { connector, prompt } = await ownerOfPrompt(ref["name"]);
    return withClient(connector, (client) => client.complete({ ...params, ref: { ...ref, name: prompt } }, given));
  };

  const methods: Readonly<Record<string, (params: Wire, given: PromiseRequestOptions) => Promise<Wire>>> = {
    "resources/list": async ({ cursor }) =>
      paged("resources", await all(({ resources }) => resources), cursor, options.pageSize),
    "resources/templates/list": async ({ cursor }) =>
      paged("resourceTemplates", await all(({ templates }) => templates), cursor, options.pageSize),
    "resources/read": async (params, given) => {
      const uri = text(params["uri"], "resource's uri");
      return withClient(await ownerOf(uri), (client) => client.readResource(uri, given));
    },
    "prompts/list": async ({ cursor }) => {
      const prompts = await all(({ prompts }, { handle }) =>
        prompts.map((prompt) => ({ ...prompt, name: exposedName(handle, String(prompt["name"])) })),
      );
      return paged("prompts", prompts, cursor, options.pageSize);
    },
    "prompts/get": async (params, given) => {
      const { connector, prompt } = await ownerOfPrompt(text(params["name"], "prompt's name"));
      const args = params["arguments"] as Readonly<Record<string, string>> | undefined;
      return withClient(connector, (client) => client.getPrompt(prompt, args, given));
    },
    "completion/complete": complete,
  };

  return {
    ownerOf,
    serve: (method, params, given) => (Object.hasOwn(methods, method) ? methods[method]!(params, given) : undefined),
    onEvent: (event) => {
      if (event.type === "detached") offers.delete(event.endpointId);
      if (event.type === "notification" && /^notifications\/(resources|prompts)\/list_changed$/.test(event.method))
        offers.delete(event.endpointId);
    },
  };
};
