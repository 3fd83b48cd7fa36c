/** A launcher such as `npx`: runs the command line after it with its own stdio and ends as that ends. */
import { spawn } from "node:child_process";

const child = spawn(process.argv[2]!, process.argv.slice(3), { stdio: "inherit" });
child.on("exit", (code) => process.exit(code ?? 1));
