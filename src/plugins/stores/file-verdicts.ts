/** Keeps over restarts which protocol era each endpoint speaks: one small file for each. */
import { isRecord, parseJson } from "../../core/artifact/json.ts";
import type { VerdictStore } from "../../core/contracts.ts";
import { digest } from "../../core/identity.ts";
import { directoryOf, privateFiles } from "./private-files.ts";

export interface FileVerdictStoreOptions {
  /** Made when it does not exist, mode 0700. Any number of processes may share it. */
  readonly directory: string;
}

const nameOf = (endpointId: string): string => `${digest(endpointId, 32)}.verdict.json`;

/** A `VerdictStore` on files. It saves a fresh process the question that a server of the other era refuses. */
export const fileVerdictStore = (options: FileVerdictStoreOptions): VerdictStore => {
  const files = privateFiles(directoryOf("fileVerdictStore", options));
  return {
    load: async (endpointId) => {
      const kept = parseJson((await files.read(nameOf(endpointId))) ?? "");
      const { era, at } = isRecord(kept) ? kept : {};
      return (era === "legacy" || era === "modern") && typeof at === "number" ? { era, at } : undefined;
    },
    save: (endpointId, { era, at }) =>
      files.replace(nameOf(endpointId), JSON.stringify({ era, at }), { durable: false }),
    remove: (endpointId) => files.remove(nameOf(endpointId)),
  };
};
