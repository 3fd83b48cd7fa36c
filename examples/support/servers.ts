/** Where the real servers of the devDependencies are, and the Node that runs them. */
import { fileURLToPath } from "node:url";

const modules = new URL("../../node_modules/", import.meta.url);

/** Real servers need Node, whatever runs the example. */
export const nodeBinary: string = fileURLToPath(new URL("node/bin/node", modules));

export const script = (name: "server-everything" | "server-filesystem" | "server-memory"): string =>
  fileURLToPath(new URL(`@modelcontextprotocol/${name}/dist/index.js`, modules));
