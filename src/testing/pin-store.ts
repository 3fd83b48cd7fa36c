/** The contract of `PinStore`. */
import type { PinStore, ToolPin } from "../core/contracts.ts";
import { answerOf, ContractBreach, type ContractSuite, demandSame } from "./contract-case.ts";

export interface PinStoreContractOptions {
  readonly store: PinStore;
  /** Spoils what is kept for the key, where that can be done. */
  readonly spoil?: ((key: string) => unknown) | undefined;
}

const pin = (tool: string, more: object = {}): ToolPin => ({
  tool,
  digest: "0".repeat(64),
  approvedAt: 1_750_000_000_000,
  definition: { name: tool, inputSchema: { type: "object" }, ...more },
});

/** Cases every pin store has to pass. Keys are new to each suite, so that a store on disk may keep what it has. */
export const pinStoreContract = ({ store, spoil }: PinStoreContractOptions): ContractSuite => {
  const run = crypto.randomUUID();
  const makeKey = (name: string) => JSON.stringify([`${run} ${name}`, "npx -y server/../é"]);
  const load = (name: string) => answerOf<ReadonlyArray<ToolPin> | undefined>("load", () => store.load(makeKey(name)));
  const save = (name: string, pins: ReadonlyArray<ToolPin>) => answerOf("save", () => store.save(makeKey(name), pins));
  return [
    {
      name: "answers undefined for what was never approved",
      run: async () => demandSame("answer", await load("never"), undefined),
    },
    {
      name: "gives back pins of all sorts, whole",
      run: async () => {
        const pins = [
          pin("read", { title: "Read", description: 'ä漢\u{1F600}\n\u0000"\\', annotations: null }),
          pin("__proto__", { inputSchema: { properties: { constructor: { enum: [1.5, null, "", []] } } } }),
          pin("long", { description: "x".repeat(200_000) }),
          pin(""),
        ];
        await save("sorts", pins);
        demandSame("pins", await load("sorts"), pins);
      },
    },
    {
      name: "keeps keys apart, and the last pins of each; fewer pins replace more",
      run: async () => {
        await save("one", [pin("a"), pin("b")]);
        await save("two", [pin("c")]);
        await save("one", [pin("a", { title: "new" })]);
        demandSame("pins", [await load("one"), await load("two")], [[pin("a", { title: "new" })], [pin("c")]]);
      },
    },
    {
      name: "writes at once to one key leave one whole list",
      run: async () => {
        const lists = Array.from({ length: 8 }, (_, i) => Array.from({ length: 50 }, () => pin(`tool ${i}`)));
        await Promise.all(lists.map((list) => save("contended", list)));
        const left = JSON.stringify(await load("contended"));
        demandSame("whole lists", lists.filter((list) => JSON.stringify(list) === left).length, 1);
      },
    },
    ...(spoil
      ? [
          {
            name: "fails to load what it kept and cannot read, rather than answer nothing",
            run: async () => {
              await save("spoilt", [pin("a")]);
              await spoil(makeKey("spoilt"));
              const answer = await load("spoilt").then(
                (pins) => ({ pins }),
                () => undefined,
              );
              if (answer) throw new ContractBreach(`load answered ${JSON.stringify(answer.pins)}`);
            },
          },
        ]
      : []),
  ];
};
