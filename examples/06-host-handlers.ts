/** What servers ask of the host: its model (sampling), its user (elicitation), its folders (roots). */
import { createRuntime, InMemoryEndpoint, ports } from "../src/mod.ts";
import type { HostHandlers } from "../src/plugin.ts";
import { startNotes } from "./support/notes-server.ts";

/** A real host asks its model and its user here. What is left out is not advertised to servers. */
const handlers: HostHandlers = {
  sampling: ({ messages }, { name }) => {
    const asked = messages.length;
    const text = `a shopping list (the model was asked ${asked} question by '${name}')`;
    return { role: "assistant", model: "example-model", content: { type: "text", text } };
  },
  elicitation: { form: async ({ message }) => ({ action: "accept", content: { name: `Ada, asked "${message}"` } }) },
  roots: () => [{ uri: "file:///home/ada/notes", name: "notes" }],
};

await using runtime = await createRuntime({
  setup: (container) => container.registerInstance(ports.hostHandlers.token, handlers),
});
await runtime.attach("notes", new InMemoryEndpoint({ name: "notes", connect: startNotes }));
const call = async (tool: string, args: Record<string, unknown> = {}): Promise<string> =>
  (await runtime.callTool({ tool: `notes__${tool}`, arguments: args })).textContent;

await call("add", { text: "milk" });
const answers = [await call("summarize"), await call("sign"), await call("where")];
for (const answer of answers) console.log(answer);
const expected = [
  "a shopping list (the model was asked 1 question by 'notes')",
  'signed by Ada, asked "Who signs?"',
  "file:///home/ada/notes",
];
if (answers.join() !== expected.join()) throw new Error("not the expected answers");
