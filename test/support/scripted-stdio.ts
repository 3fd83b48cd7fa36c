/** The scripted stdio server of the testing kit, always on the Node that comes as a devDependency. */
import * as Kit from "../../src/testing/servers/stdio.ts";
import type { StdioProgram } from "../../src/testing/servers/stdio-program.ts";
import { nodeBinary } from "./node-binary.ts";

export { readLog } from "../../src/testing/servers/stdio.ts";
export type { LogLine, StdioProgram, Step } from "../../src/testing/servers/stdio-program.ts";

export const scriptedStdio = (program: StdioProgram = {}): { command: string; args: string[] } =>
  Kit.scriptedStdio(program, { node: nodeBinary });
