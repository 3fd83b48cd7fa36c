/** `node counted-start.ts <file> <server> [arguments]`: adds a line to the file, then is the server. */
import { appendFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [file, server, ...rest] = process.argv.slice(2);
appendFileSync(file!, `${process.pid}\n`);
process.argv.splice(1, Infinity, server!, ...rest);
await import(pathToFileURL(server!).href);
