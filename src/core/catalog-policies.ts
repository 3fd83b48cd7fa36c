/** What the catalog policies say of a tool. One that fails hides the tool: policies keep models from tools. */
import * as Effect from "effect/Effect";
import { isRecord } from "./artifact/json.ts";
import type { CatalogPolicy } from "./contracts.ts";
import type { McpEndpoint } from "./endpoint.ts";
import { PluginFailed } from "./errors.ts";
import type { Provider } from "./provider.ts";
import { legalName } from "./tool-name.ts";

export interface CatalogPolicies {
  /** The tool's name, or undefined when it is hidden. Never throws. */
  readonly decide: (provider: Provider) => string | undefined;
  /** Why a tool is hidden although no policy said so. Of the last decision, without a new one. */
  readonly fault: (provider: Provider) => string | undefined;
}

const thrown = (cause: unknown): string => {
  try {
    return `it threw: ${cause instanceof Error ? cause.message : String(cause)}`;
  } catch {
    return "it threw a value that has no text";
  }
};

const shown = (answer: unknown): string => {
  if (Effect.isEffect(answer)) return "an Effect; it has to decide at once";
  if (answer instanceof Promise) return "a promise; it has to decide at once";
  if (typeof answer === "object" && answer !== null)
    return "rename" in answer ? "a rename without a text" : "an object without rename";
  return typeof answer === "string" ? JSON.stringify(answer.slice(0, 40)) : String(answer);
};

type Decision = { readonly name: string | undefined } | { readonly fault: string };

/** What the policy makes of the name so far; undefined hides the tool. */
const ask = (policy: CatalogPolicy, provider: Provider, name: string): Decision => {
  const { handle, description, raw } = provider;
  try {
    const answer: unknown = policy.decide({ handle, name: provider.tool, description, annotations: raw.annotations });
    if (answer === "keep") return { name };
    if (answer === "hide") return { name: undefined };
    // Nobody waits for it, so its rejection must not end the host.
    if (answer instanceof Promise) answer.catch(() => {});
    else if (isRecord(answer)) {
      const { rename } = answer;
      if (typeof rename === "string" && rename.trim() !== "") return { name: legalName(rename) };
    }
    return { fault: `it answered ${shown(answer)}. Answer "keep", "hide" or { rename: "a name" }` };
  } catch (cause) {
    return { fault: thrown(cause) };
  }
};

/** How the plugin is called in messages: by its place, and its name where it has one. */
const labelOf = (policy: CatalogPolicy, i: number): string => {
  const { name } = policy as { readonly name?: unknown };
  return `catalogPolicies[${i}]${typeof name === "string" && name !== "" ? ` ${name}` : ""}`;
};

export const makeCatalogPolicies = (
  policies: ReadonlyArray<CatalogPolicy>,
  onDiagnostic: (endpoint: McpEndpoint, message: string) => void,
): CatalogPolicies => {
  const faults = new WeakMap<Provider, string>();
  /** What was told last of each tool: every list is decided on anew, and nobody wants to be told anew. */
  const told = new WeakMap<McpEndpoint, Map<string, string>>();

  const refuse = (provider: Provider, reason: string): undefined => {
    const { endpoint, handle, tool } = provider;
    faults.set(provider, reason);
    const reasons = told.get(endpoint) ?? new Map<string, string>();
    told.set(endpoint, reasons);
    const key = JSON.stringify([handle, tool]);
    if (reasons.get(key) === reason) return;
    reasons.set(key, reason);
    onDiagnostic(endpoint, `tool '${tool}' is hidden: ${reason}`);
  };

  return {
    fault: (provider) => faults.get(provider),
    decide: (provider) => {
      faults.delete(provider);
      let name = provider.name;
      for (const [i, policy] of policies.entries()) {
        const decision = ask(policy, provider, name);
        if ("fault" in decision) {
          const { message } = new PluginFailed({ plugin: labelOf(policy, i), reason: decision.fault });
          return refuse(provider, message);
        }
        if (decision.name === undefined) return undefined;
        name = decision.name;
      }
      return name;
    },
  };
};
