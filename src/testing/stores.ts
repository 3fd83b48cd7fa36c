/** The contracts of `TokenStore` and `ArtifactStore`. */
import type { Answer } from "../core/answer.ts";
import type { ArtifactStore, TokenStore } from "../core/contracts.ts";
import { answerOf, type ContractSuite, demandSame } from "./contract-case.ts";

interface Texts {
  readonly put: (key: string, text: string) => Answer<void>;
  readonly get: (key: string) => Answer<string | undefined>;
}

const strange: Readonly<Record<string, string>> = {
  "an empty text": "",
  "a text of all sorts": 'ä漢\u{1F600}\n\r\n\u0000"\\',
  "200,000 characters": "x".repeat(200_000),
};

/** What both stores promise. Keys are new to each suite, so that a store on disk may keep what it has. */
const textCases = ({ put, get }: Texts, makeKey: (name: string) => string): ContractSuite => {
  const write = (key: string, text: string) => answerOf("write", () => put(key, text));
  const read = (key: string) => answerOf<string | undefined>("read", () => get(key));
  return [
    {
      name: "answers undefined for what it never got",
      run: async () => demandSame("answer", await read(makeKey("never")), undefined),
    },
    ...Object.entries(strange).map(([what, text]) => ({
      name: `gives back ${what}`,
      run: async () => {
        await write(makeKey(what), text);
        demandSame("text", await read(makeKey(what)), text);
      },
    })),
    {
      name: "keeps keys apart, and the last text of each",
      run: async () => {
        await write(makeKey("one"), "first");
        await write(makeKey("two"), "other");
        await write(makeKey("one"), "second");
        demandSame("texts", [await read(makeKey("one")), await read(makeKey("two"))], ["second", "other"]);
      },
    },
    {
      name: "takes twenty at once",
      run: async () => {
        const keys = Array.from({ length: 20 }, (_, i) => makeKey(`many ${i}`));
        await Promise.all(keys.map((key, i) => write(key, String(i))));
        demandSame(
          "texts",
          await Promise.all(keys.map(read)),
          keys.map((_, i) => String(i)),
        );
      },
    },
    {
      name: "writes at once to one key leave one whole text",
      run: async () => {
        const candidates = Array.from({ length: 8 }, (_, i) => String(i).repeat(50_000));
        await Promise.all(candidates.map((text) => write(makeKey("contended"), text)));
        const left = await read(makeKey("contended"));
        demandSame("whole texts", candidates.filter((text) => text === left).length, 1);
      },
    },
  ];
};

export interface TokenStoreContractOptions {
  readonly store: TokenStore;
}

/** Cases every token store has to pass. */
export const tokenStoreContract = ({ store }: TokenStoreContractOptions): ContractSuite => {
  const run = crypto.randomUUID();
  const makeKey = (name: string) => `https://example.com/mcp#as:${run} ${name}`;
  return [
    ...textCases({ put: (key, text) => store.save(key, text), get: (key) => store.load(key) }, makeKey),
    {
      name: "removes a token, and leaves the others",
      run: async () => {
        await answerOf("save", () => store.save(makeKey("gone"), "a"));
        await answerOf("save", () => store.save(makeKey("stays"), "b"));
        await answerOf("remove", () => store.remove(makeKey("gone")));
        await answerOf("remove", () => store.remove(makeKey("never there")));
        demandSame("gone", await answerOf("load", () => store.load(makeKey("gone"))), undefined);
        demandSame("stays", await answerOf("load", () => store.load(makeKey("stays"))), "b");
      },
    },
  ];
};

export interface ArtifactStoreContractOptions {
  readonly store: ArtifactStore;
}

/** Cases every artifact store has to pass. */
export const artifactStoreContract = ({ store }: ArtifactStoreContractOptions): ContractSuite => {
  const run = crypto.randomUUID();
  return textCases(store, (name) => `artifact:contract:${run}~${name.replace(/[^a-z0-9]/g, "-")}`);
};
