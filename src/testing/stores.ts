/** The contracts of `TokenStore`, `ArtifactStore` and `VerdictStore`. */
import type { Answer } from "../core/answer.ts";
import type { ArtifactStore, EraVerdict, TokenStore, VerdictStore } from "../core/contracts.ts";
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

export interface VerdictStoreContractOptions {
  readonly store: VerdictStore;
}

/** Cases every verdict store has to pass. */
export const verdictStoreContract = ({ store }: VerdictStoreContractOptions): ContractSuite => {
  const run = crypto.randomUUID();
  const makeId = (name: string) => `npx -y server-${run} "${name}" #env:0123abcd`;
  const save = (name: string, verdict: EraVerdict) => answerOf("save", () => store.save(makeId(name), verdict));
  const load = (name: string) => answerOf<EraVerdict | undefined>("load", () => store.load(makeId(name)));
  const same = async (name: string, expected: EraVerdict): Promise<void> => {
    const { era, at } = (await load(name)) ?? {};
    demandSame(`verdict on ${name}`, { era, at }, { era: expected.era, at: expected.at });
  };
  return [
    {
      name: "answers undefined for an endpoint it knows nothing of",
      run: async () => demandSame("answer", await load("never"), undefined),
    },
    {
      name: "keeps endpoints apart, and the last verdict on each, to the millisecond",
      run: async () => {
        await save("one", { era: "legacy", at: 1 });
        await save("two", { era: "legacy", at: 1_800_000_000_123 });
        await save("one", { era: "modern", at: 1_800_000_000_456 });
        await same("one", { era: "modern", at: 1_800_000_000_456 });
        await same("two", { era: "legacy", at: 1_800_000_000_123 });
      },
    },
    {
      name: "takes twenty at once",
      run: async () => {
        const verdicts = Array.from({ length: 20 }, (_, at): EraVerdict => ({ era: at % 2 ? "modern" : "legacy", at }));
        await Promise.all(verdicts.map((verdict, i) => save(`many ${i}`, verdict)));
        for (const [i, verdict] of verdicts.entries()) await same(`many ${i}`, verdict);
      },
    },
    {
      name: "writes at once on one endpoint leave one whole verdict",
      run: async () => {
        const verdicts = Array.from({ length: 8 }, (_, at): EraVerdict => ({ era: "legacy", at }));
        await Promise.all(verdicts.map((verdict) => save("contended", verdict)));
        const left = await load("contended");
        demandSame("whole verdicts", verdicts.filter(({ at }) => at === left?.at).length, 1);
      },
    },
    {
      name: "removes a verdict, and leaves the others",
      run: async () => {
        await save("gone", { era: "legacy", at: 1 });
        await save("stays", { era: "modern", at: 2 });
        await answerOf("remove", () => store.remove(makeId("gone")));
        await answerOf("remove", () => store.remove(makeId("never there")));
        demandSame("gone", await load("gone"), undefined);
        await same("stays", { era: "modern", at: 2 });
      },
    },
  ];
};
