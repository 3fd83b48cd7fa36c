/**
 * Resources, prompts and completion of all attached servers, for one client after
 * another. Prompts are named as tools are, `<handle>__<prompt>`. A resource keeps its
 * URI, which is the server's own. Where several servers list the same URI, it is the
 * first attached one's: lists show it once, and reads go there. A server's last list
 * stands while the server is slow or down, so a URI does not change hands meanwhile.
 */
import * as Duration from "effect/Duration";
import { isRecord } from "../../core/artifact/json.ts";
import type { McpEvent } from "../../core/events.ts";
import type { PromiseClient, PromiseConnector, PromiseRequestOptions } from "../../core/promise.ts";
import { exposedName } from "../../core/tool-name.ts";
import { paged } from "./served-tools.ts";
import type { ServedRuntime, ServingOptions } from "./served-runtime.ts";
import { fitsTemplate } from "./uri-template.ts";
import { rpcError, textParam, type Wire } from "./wire.ts";

type Items = ReadonlyArray<Wire>;

/** What one server offers. */
interface Offer {
  /** Whether it has resources at all, listed or not. */
  readonly hasResources: boolean;
  readonly resources: Items;
  readonly templates: Items;
  readonly prompts: Items;
  /** False for what a server offered before, or for nothing yet. */
  readonly current: boolean;
}

const nothing: Offer = { hasResources: false, resources: [], templates: [], prompts: [], current: false };

export interface FeatureOptions extends PromiseRequestOptions {
  /** Runs what a server does for the request, when it is the client's turn. */
  readonly during: <A>(handle: string, work: () => Promise<A>) => Promise<A>;
}

export interface ServedFeatures {
  /** Answers a request; undefined for methods of other features. */
  readonly serve: (method: string, params: Wire, options: FeatureOptions) => Promise<Wire> | undefined;
  /** The server that offers a resource. Rejects with -32002 when none does. */
  readonly ownerOf: (uri: string) => Promise<PromiseConnector>;
  /** Forgets lists that changed. */
  readonly onEvent: (event: McpEvent) => void;
}

/** The first item of each key. */
const firstOfEach = (key: string, items: Items): Items => {
  const seen = new Set<unknown>();
  return items.filter((item) => !seen.has(item[key]) && seen.add(item[key]));
};

export const makeServedFeatures = (runtime: ServedRuntime, options: ServingOptions): ServedFeatures => {
  const { pageSize } = options;
  const patience = Duration.toMillis(Duration.fromInputUnsafe(options.listPatience ?? "5 seconds"));
  /** By endpoint id, so that listing wakes no idle server. */
  const offers = new Map<string, Promise<Offer>>();
  const lastKnown = new Map<string, Offer>();

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
      const hasResources = client.capabilities.resources !== undefined;
      return { hasResources, resources, templates, prompts, current: true };
    });

  /** A server that fails or is slow offers what it did before, and is asked again the next time. */
  const offerOf = async (connector: PromiseConnector): Promise<Offer> => {
    const { endpointId } = connector.endpoint;
    const known = offers.get(endpointId);
    const asked = known ?? list(connector);
    if (!known) {
      offers.set(endpointId, asked);
      asked.then(
        (offer) => lastKnown.set(endpointId, { ...offer, current: false }),
        () => offers.get(endpointId) === asked && offers.delete(endpointId),
      );
    }
    const before = lastKnown.get(endpointId) ?? nothing;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLong = new Promise<Offer>((resolve) => (timer = setTimeout(resolve, patience, before)));
    return Promise.race([asked.catch(() => before), tooLong]).finally(() => clearTimeout(timer));
  };

  const all = async <A>(
    pick: (offer: Offer, connector: PromiseConnector) => ReadonlyArray<A>,
  ): Promise<{ readonly items: ReadonlyArray<A>; readonly complete: boolean }> => {
    const connectors = runtime.connectors();
    const found = await Promise.all(connectors.map(offerOf));
    const items = found.flatMap((offer, i) => pick(offer, connectors[i]!));
    return { items, complete: found.every(({ current }) => current) };
  };

  const ownerOf = async (uri: string): Promise<PromiseConnector> => {
    const { items: servers } = await all(({ hasResources, resources, templates }, connector) => {
      const listed = resources.some((resource) => resource["uri"] === uri);
      const templated = templates.some(
        ({ uriTemplate }) => uriTemplate === uri || fitsTemplate(String(uriTemplate), uri),
      );
      return hasResources ? [{ connector, listed, templated }] : [];
    });
    // What nobody lists may still exist, where only one server can have it.
    const only = servers.length === 1 ? servers[0] : undefined;
    const owner = servers.find(({ listed }) => listed) ?? servers.find(({ templated }) => templated) ?? only;
    if (!owner) throw rpcError(-32002, "Resource not found", { uri });
    return owner.connector;
  };

  const ownerOfPrompt = async (given: unknown) => {
    const name = textParam(given, "prompt's name");
    const { items: owners } = await all(({ prompts }, connector) =>
      prompts.flatMap((prompt) =>
        exposedName(connector.handle, String(prompt["name"])) === name
          ? [{ connector, prompt: String(prompt["name"]) }]
          : [],
      ),
    );
    if (!owners[0]) throw rpcError(-32602, `There is no prompt '${name}'`);
    return owners[0];
  };

  /** Lets a server do its part of a request. */
  const ask = (
    connector: PromiseConnector,
    { during }: FeatureOptions,
    use: (client: PromiseClient) => Promise<Wire>,
  ): Promise<Wire> => during(connector.handle, () => withClient(connector, use));

  const complete = async (params: Wire, given: FeatureOptions): Promise<Wire> => {
    const ref = isRecord(params["ref"]) ? params["ref"] : {};
    if (ref["type"] === "ref/resource") {
      const connector = await ownerOf(textParam(ref["uri"], "resource's uri"));
      return ask(connector, given, (client) => client.complete(params, given));
    }
    const { connector, prompt } = await ownerOfPrompt(ref["name"]);
    return ask(connector, given, (client) => client.complete({ ...params, ref: { ...ref, name: prompt } }, given));
  };

  const methods: Readonly<Record<string, (params: Wire, given: FeatureOptions) => Promise<Wire>>> = {
    "resources/list": async ({ cursor }) => {
      const { items, complete } = await all(({ resources }) => resources);
      return paged("resources", firstOfEach("uri", items), { cursor, pageSize, complete });
    },
    "resources/templates/list": async ({ cursor }) => {
      const { items, complete } = await all(({ templates }) => templates);
      return paged("resourceTemplates", firstOfEach("uriTemplate", items), { cursor, pageSize, complete });
    },
    "resources/read": async (params, given) => {
      const uri = textParam(params["uri"], "resource's uri");
      return ask(await ownerOf(uri), given, (client) => client.readResource(uri, given));
    },
    "prompts/list": async ({ cursor }) => {
      const { items, complete } = await all(({ prompts }, { handle }) =>
        prompts.map((prompt) => ({ ...prompt, name: exposedName(handle, String(prompt["name"])) })),
      );
      return paged("prompts", items, { cursor, pageSize, complete });
    },
    "prompts/get": async (params, given) => {
      const { connector, prompt } = await ownerOfPrompt(params["name"]);
      const args = params["arguments"] as Readonly<Record<string, string>> | undefined;
      return ask(connector, given, (client) => client.getPrompt(prompt, args, given));
    },
    "completion/complete": complete,
  };

  return {
    ownerOf,
    serve: (method, params, given) => (Object.hasOwn(methods, method) ? methods[method]!(params, given) : undefined),
    onEvent: (event) => {
      if (event.type === "detached") {
        offers.delete(event.endpointId);
        lastKnown.delete(event.endpointId);
      }
      if (event.type === "notification" && /^notifications\/(resources|prompts)\/list_changed$/.test(event.method))
        offers.delete(event.endpointId);
    },
  };
};
