/**
 * The least MCP server over stdio: one tool, `echo`. No SDK and no checks, so that
 * what a bench measures is the client. Answers of one read leave in one write.
 */
const tool = {
  name: "echo",
  description: "Answers its text.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};

const resultOf = ({ method, params }) => {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "echo", version: "1.0.0" },
      };
    case "tools/list":
      return { tools: [tool] };
    case "tools/call":
      return { content: [{ type: "text", text: params.arguments.text }] };
    default:
      return {};
  }
};

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (chunk) => {
  const lines = (rest + chunk).split("\n");
  rest = lines.pop();
  let answers = "";
  for (const line of lines) {
    const request = JSON.parse(line);
    if (request.id === undefined) continue;
    answers += JSON.stringify({ jsonrpc: "2.0", id: request.id, result: resultOf(request) }) + "\n";
  }
  if (answers !== "") process.stdout.write(answers);
});
process.stdin.on("end", () => process.exit(0));
