/**
 * `node modern-stdio-server.ts modern|both|abrupt [file]`: over stdio; each start adds a line to the file. The abrupt
 * one speaks the modern era alone and ends at what it does not know.
 */
import { appendFileSync } from "node:fs";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { makeModernServer } from "./modern-server.ts";

const [eras, starts] = process.argv.slice(2);
if (starts) appendFileSync(starts, `${process.pid}\n`);
if (eras === "abrupt")
  process.stdin.prependListener("data", (chunk: Buffer) => String(chunk).includes('"initialize"') && process.exit(3));
serveStdio(makeModernServer, { legacy: eras === "both" ? "serve" : "reject" });
