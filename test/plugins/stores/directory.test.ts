/** A store without its directory is an error where it is made, not where it is first used. */
import { describe, expect, it } from "@effect/vitest";
import { InvalidConfig } from "../../../src/effect.ts";
import { fileArtifactStore, filePinStore, fileTokenStore, fileVerdictStore } from "../../../src/stores.ts";

const stores = { fileArtifactStore, filePinStore, fileTokenStore, fileVerdictStore };
const odd: ReadonlyArray<unknown> = [
  "./pins",
  { folder: "./pins" },
  {},
  { directory: "" },
  { directory: 5 },
  undefined,
  null,
];

const thrown = (make: () => unknown): unknown => {
  try {
    return make();
  } catch (cause) {
    return cause;
  }
};

describe("a file store", () => {
  for (const [name, make] of Object.entries(stores))
    it(`${name}: asks for its directory at once`, () => {
      for (const options of odd) {
        const error = thrown(() => make(options as never));
        expect(error).toBeInstanceOf(InvalidConfig);
        expect(error).toMatchObject({ source: name, field: "directory" });
        expect((error as Error).message).toContain(`${name}({ directory: "`);
      }
      expect(thrown(() => make({ directory: "./pins" }))).not.toBeInstanceOf(Error);
    });
});
