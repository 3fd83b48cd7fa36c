/** The words of the command line: commands, options, help. Parsing alone; the work is in `commands/`. */
import * as Argument from "effect/cli/Argument";
import * as CliConfig from "effect/cli/CliConfig";
import type * as CliError from "effect/cli/CliError";
import * as CliOutput from "effect/cli/CliOutput";
import * as Command from "effect/cli/Command";
import * as Flag from "effect/cli/Flag";
import * as GlobalFlag from "effect/cli/GlobalFlag";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { duration, loginFlags, optional, sharedFlags } from "./flags.ts";
import { tokenVariable } from "./gateway-record.ts";
import type { CommandOptions, Command as Work } from "./session.ts";
import { UsageError } from "./usage-error.ts";

/** Runs a command's work. */
export type Runner = <Input>(work: Work<Input>, input: Input, options: CommandOptions) => Effect.Effect<void>;

/** What the parser itself has to say. */
export interface Speaker {
  readonly colors: boolean;
  /** Help or version that was asked for: a result. */
  readonly answer: (text: string) => Effect.Effect<void>;
  /** Help beside an error. */
  readonly remind: (text: string) => Effect.Effect<void>;
}

const isObject = (word: string | undefined): boolean => word?.trimStart().startsWith("{") === true;

/**
 * `--json` alone asks for JSON output; with a JSON object after it, it gives the
 * arguments of a call. The second form becomes `--arguments`.
 */
export const normalize = (words: ReadonlyArray<string>): ReadonlyArray<string> => {
  const end = words.indexOf("--");
  return words.map((word, i) => {
    if (end >= 0 && i > end) return word;
    if (word === "--json" && isObject(words[i + 1])) return "--arguments";
    return word.startsWith("--json=") && isObject(word.slice(7)) ? `--arguments=${word.slice(7)}` : word;
  });
};

/** Whether the words ask for JSON output; asked before they are parsed, because errors are JSON then too. */
export const wantsJson = (words: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--");
  return (end < 0 ? words : words.slice(0, end)).includes("--json");
};

/** A command's module is loaded when the command is given: a start should cost no more than its own work. */
const lazy =
  <Input>(load: () => Promise<Work<Input>>): Work<Input> =>
  (input, session) =>
    Effect.flatMap(Effect.promise(load), (command) => command(input, session));

const commands = {
  login: lazy(async () => (await import("./commands/auth.ts")).loginCommand),
  status: lazy(async () => (await import("./commands/auth.ts")).statusCommand),
  logout: lazy(async () => (await import("./commands/auth.ts")).logoutCommand),
  call: lazy(async () => (await import("./commands/call.ts")).callCommand),
  connect: lazy(async () => (await import("./commands/connect.ts")).connectCommand),
  doctor: lazy(async () => (await import("./commands/doctor.ts")).doctorCommand),
  health: lazy(async () => (await import("./commands/health.ts")).healthCommand),
  import: lazy(async () => (await import("./commands/import.ts")).importCommand),
  listPins: lazy(async () => (await import("./commands/pins.ts")).listPinsCommand),
  approvePins: lazy(async () => (await import("./commands/pins.ts")).approvePinsCommand),
  serve: lazy(async () => (await import("./commands/serve.ts")).serveCommand),
  tools: lazy(async () => (await import("./commands/tools.ts")).toolsCommand),
};

const makeCommands = (run: Runner) => {
  const root = Command.make("nucleo-mcp").pipe(
    Command.withSharedFlags(sharedFlags),
    Command.withDescription("Use the MCP servers of an mcp.json from the command line"),
  );
  const work = <Input>(command: Work<Input>, input: Input) =>
    Effect.flatMap(root, (options) => run(command, input, options));

  const server = Argument.String("server").pipe(Argument.withDescription("Name of the server in the configuration"));
  const oneServer = Argument.String("server").pipe(
    Argument.withDescription("Only this server"),
    Argument.optional,
    Argument.map(Option.getOrUndefined),
  );

  const tools = Command.make("tools", { server: oneServer }, (input) => work(commands.tools, input)).pipe(
    Command.withDescription("List the tools of all servers, or of one"),
  );

  const call = Command.make(
    "call",
    {
      server,
      tool: Argument.String("tool").pipe(Argument.withDescription("Name of the tool")),
      pairs: Argument.String("key=value").pipe(
        Argument.withDescription("An argument; JSON where the tool wants something else than a string"),
        Argument.variadic(),
      ),
      json: Flag.String("arguments").pipe(
        Flag.withMetavar("object"),
        Flag.withDescription("The arguments as one JSON object; --json '{…}' is the same"),
        optional,
      ),
    },
    (input) => work(commands.call, input),
  ).pipe(
    Command.withDescription("Call a tool and write its result"),
    Command.withExamples([
      { command: "nucleo-mcp call files read_file path=README.md" },
      { command: `nucleo-mcp call files read_file --json '{"path":"README.md"}'` },
    ]),
  );

  const health = Command.make("health", {}, (input) => work(commands.health, input)).pipe(
    Command.withDescription("Connect all servers and show the state of the runtime"),
  );
  const doctor = Command.make(
    "doctor",
    {
      dialect: Flag.Literals("dialect", ["anthropic", "openai", "openai-strict", "gemini"]).pipe(
        Flag.withDescription("Also say what this model provider makes of the tools' schemas"),
        optional,
      ),
    },
    (input) => work(commands.doctor, input),
  ).pipe(Command.withDescription("Check configuration, start, handshake and tools of all servers"));
  const serve = Command.make(
    "serve",
    {
      http: Flag.String("http").pipe(
        Flag.withMetavar("address"),
        Flag.withDescription("Where to listen. Default: 127.0.0.1:7777"),
        Flag.withDefault("127.0.0.1:7777"),
      ),
      stdio: Flag.Boolean("stdio").pipe(
        Flag.withDefault(false),
        Flag.withDescription("Serve the program that started this one, over stdin and stdout"),
      ),
      allowHost: Flag.String("allow-host").pipe(
        Flag.withMetavar("names"),
        Flag.withDescription(`Names under which other machines connect; they need the token in ${tokenVariable}`),
        optional,
      ),
      artifacts: Flag.String("artifacts").pipe(
        Flag.withMetavar("folder"),
        Flag.withDescription(
          "Cut results above 8 KiB; clients read the rest by get_artifact_field, kept there over restarts",
        ),
        optional,
      ),
      untilIdle: duration("until-idle", "End when no client was there for so long"),
      record: Flag.String("record").pipe(
        Flag.withMetavar("file"),
        Flag.withDescription("Leave address and token there, for 'connect'"),
        optional,
      ),
    },
    (input) => work(commands.serve, input),
  ).pipe(Command.withDescription("Serve all servers to MCP clients; each server runs once for all of them"));
  const connect = Command.make("connect", {}, (input) => work(commands.connect, input)).pipe(
    Command.withDescription("A stdio server for hosts: joins the running gateway of the configuration, or starts it"),
  );
  const imports = Command.make(
    "import",
    {
      write: Flag.String("write").pipe(
        Flag.withMetavar("file"),
        Flag.withDescription("Write the merged configuration there; a file that exists is kept as <file>.bak"),
        optional,
      ),
      home: Flag.String("home").pipe(
        Flag.withMetavar("folder"),
        Flag.withDescription("Look below this home folder"),
        optional,
      ),
    },
    (input) => work(commands.import, input),
  ).pipe(Command.withDescription("Show what the hosts on this machine have configured, as one mcp.json"));
  const auth = Command.make("auth").pipe(
    Command.withDescription("Log in to HTTP servers; the other commands use the login by themselves"),
    Command.withSubcommands([
      Command.make(
        "login",
        {
          server,
          ...loginFlags,
        },
        (input) => work(commands.login, input),
      ).pipe(Command.withDescription("Log in with a browser; --timeout bounds the wait for it (default and most 5m)")),
      Command.make("status", { server: oneServer }, (input) => work(commands.status, input)).pipe(
        Command.withDescription("Show the logins that are kept, without a secret"),
      ),
      Command.make("logout", { server }, (input) => work(commands.logout, input)).pipe(
        Command.withDescription("Forget the login"),
      ),
    ]),
  );
  const pins = Command.make("pins").pipe(
    Command.withDescription('Approve the tools of servers with "pin": true in their entry'),
    Command.withSubcommands([
      Command.make("list", { server: oneServer }, (input) => work(commands.listPins, input)).pipe(
        Command.withDescription("Show which tools are approved"),
      ),
      Command.make(
        "approve",
        {
          server,
          tool: Argument.String("tool").pipe(
            Argument.withDescription("Only this tool"),
            Argument.optional,
            Argument.map(Option.getOrUndefined),
          ),
          yes: Flag.String("yes").pipe(
            Flag.withMetavar("mark"),
            Flag.withDescription("Approve exactly the changes that were shown with this mark"),
            optional,
          ),
        },
        (input) => work(commands.approvePins, input),
      ).pipe(Command.withDescription("Show what changed or is new, and approve it")),
    ]),
  );
  return root.pipe(Command.withSubcommands([serve, connect, imports, tools, call, auth, pins, health, doctor]));
};

/** Only file flags and prompts ask for these services, and there are none. */
const noServices = Context.empty() as Context.Context<Command.Environment>;

const presenter = (speaker: Speaker): CliOutput.Presenter => {
  const formatter = CliOutput.defaultFormatter({ colors: speaker.colors });
  return {
    present: (event) => {
      if (event._tag === "Version") return speaker.answer(event.version);
      if (event._tag === "InvalidInvocation") return Effect.void;
      const text = formatter.formatHelpDoc(event.helpDoc);
      return event.reason === "Requested" ? speaker.answer(text) : speaker.remind(text);
    },
  };
};

/** What a flag without its value does not say by itself: where the value comes from. */
const said = (error: CliError.CliError): string =>
  error._tag === "InvalidValue" && error.option === "yes" && error.value === ""
    ? `${error.message}. The same command without --yes shows the changes and prints their mark.`
    : error.message;

const usage = (error: CliError.CliError): UsageError => {
  const errors = error._tag === "ShowHelp" ? error.errors : [error];
  const path = error._tag === "ShowHelp" ? error.commandPath.join(" ") : "nucleo-mcp";
  const what = errors.map(said).join("\n") || "A command is missing.";
  return new UsageError({ message: `${what}\nSee ${path} --help.` });
};

/** Parses the words and runs what they ask for; fails with `UsageError`. */
export const runCommandLine = (
  words: ReadonlyArray<string>,
  version: string,
  speaker: Speaker,
  run: Runner,
): Effect.Effect<void, UsageError> =>
  Command.runWith(makeCommands(run), { version })(words).pipe(
    Effect.mapError(usage),
    Effect.provideService(CliOutput.Presenter, presenter(speaker)),
    Effect.provideService(CliConfig.CliConfig, {
      builtIns: [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions],
    }),
    Effect.provideContext(noServices),
  );
