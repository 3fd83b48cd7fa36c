import { fileURLToPath } from "node:url";

/** The Node that comes as a devDependency: every test server runs on it, whatever runs the suite. */
export const nodeBinary: string = fileURLToPath(new URL("../../node_modules/node/bin/node", import.meta.url));
