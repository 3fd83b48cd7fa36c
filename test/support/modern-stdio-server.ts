/** `node modern-stdio-server.ts modern|both [file]`: over stdio; each start adds a line to the file. */
import { appendFileSync } from "node:fs";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { makeModernServer } from "./modern-server.ts";

const [eras, starts] = process.argv.slice(2);
if (starts) appendFileSync(starts, `${process.pid}\n`);
serveStdio(makeModernServer, { legacy: eras === "both" ? "serve" : "reject" });
