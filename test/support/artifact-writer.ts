/** A process that writes `count` texts of its own into a store that others write to, too. */
import { fileArtifactStore } from "../../src/stores.ts";

const [directory = "", name = "", count = "0", maxCount = "1"] = process.argv.slice(2);
const store = fileArtifactStore({ directory, maxCount: Number(maxCount) });
for (let i = 0; i < Number(count); i++) {
  await store.put(`artifact:${name}~${i}`, `${name} ${i} `.repeat(500));
  await store.put("artifact:contended~1", `${name} `.repeat(20_000));
}
