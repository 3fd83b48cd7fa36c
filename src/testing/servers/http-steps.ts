/** Takes the steps of an HTTP fault program. */
import { defaultAnswers, type Message, textResult } from "./default-answers.ts";
import type { Drip, Json, StepsBy } from "./fault-program.ts";
import type { HttpExchange, HttpHandler } from "./http.ts";
import type { Line } from "./http-line.ts";
import { answerOn, lineOf, refuse } from "./http-mcp.ts";
import type { HttpProgram, HttpStep } from "./http-program.ts";
import { fill, fillText, makeLatches, makeTaking, sleep } from "./step-script.ts";

const flood = (bytes: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: Math.ceil(bytes / 100) }, (_, at) => [`x-flood-${at}`, "h".repeat(80)]));

/** One request, and what the steps for it may do. */
export interface Scene {
  readonly exchange: HttpExchange;
  readonly line: Line;
  /** The JSON-RPC message whose values the steps take. */
  readonly message: Message;
  /** The steps are those of the first name that has some. */
  readonly names: ReadonlyArray<string>;
  readonly byDefault: () => Promise<void> | void;
  /** Told of an event id that was given. */
  readonly onEventId?: (id: string) => void;
}

/** Takes the steps for a request, if there are any, and gives the default answer where they give none. */
export const makePlayer = (on?: StepsBy<HttpStep>): ((scene: Scene) => Promise<void>) => {
  const take = makeTaking(on);
  const latch = makeLatches();

  return async ({ exchange, line, message, names, byDefault, onEventId }) => {
    const { server } = exchange;

    const reply = (body: object, step: { readonly id?: Json; readonly drip?: Drip } = {}): Promise<void> =>
      line.message({ jsonrpc: "2.0", id: step.id === undefined ? message.id : step.id, ...body }, step.drip);

    /** What is no answer has no place in JSON. */
    const aside = async (body: Json): Promise<void> => {
      const said = { jsonrpc: "2.0", ...(fill(body, message) as object) };
      if (line.isStream) return line.message(said);
      server.streams.get(line.session)?.event({ event: "message", data: said });
    };

    const event = (step: Extract<HttpStep, { event: unknown }>): Promise<void> => {
      const { data, id, ...rest } = step.event;
      if (id === undefined) return line.event({ ...rest, data: fill(data, message) }, step.drip);
      const given = fillText(id, message);
      onEventId?.(given);
      return line.event({ ...rest, data: fill(data, message), id: given }, step.drip);
    };

    const repeat = async (step: Extract<HttpStep, { repeat: unknown }>): Promise<void> => {
      for (let left = step.repeat; left > 0 && !line.closed; left--) {
        await runAll(step.steps);
        // A turn of the event loop each time, so that others are served and the end is noticed.
        await sleep(step.every ?? 0, server.ended);
        await line.drained();
      }
    };

    const act = async (step: HttpStep): Promise<void> => {
      if ("message" in step) return line.message(fill(step.message, message));
      if ("raw" in step) return line.raw(fillText(step.raw, message));
      if ("bytes" in step) return line.raw(Buffer.from(step.bytes, "base64"), step.drip);
      if ("notify" in step) return aside(step.notify);
      if ("request" in step) return aside(step.request);
      if ("event" in step) return event(step);
      if ("head" in step) return void line.open(step.head);
      if ("headFlood" in step) return void line.open(flood(step.headFlood));
      if ("delay" in step) return sleep(step.delay, server.ended);
      if ("hold" in step) return latch(step.hold).opened;
      if ("release" in step) return latch(step.release).open();
      if ("repeat" in step) return repeat(step);
      if ("push" in step)
        return server.streams.get(line.session)?.event({ event: "message", data: fill(step.push, message) });
      if ("cut" in step) return server.streams.get(line.session)?.destroy();
      if ("forget" in step) return server.sessions.clear();
    };

    /** Runs one step; answers true when the request needs no default answer any more. */
    const run = async (step: HttpStep): Promise<boolean> => {
      if ("reply" in step) await reply({ result: fill(step.reply, message) }, step);
      else if ("error" in step) await reply({ error: fill(step.error, message) }, step);
      else if ("echo" in step) await reply({ result: textResult(JSON.stringify(message.params?.["arguments"] ?? {})) });
      else if ("big" in step) await reply({ result: textResult((step.char ?? "x").repeat(step.big)) }, step);
      else if ("default" in step) await byDefault();
      else if ("status" in step && !("redirect" in step)) line.status(step.status, step.body, step.headers);
      else if ("redirect" in step) line.status(step.status ?? 307, "", { location: step.redirect });
      else if ("end" in step) line.end();
      else if ("drop" in step) exchange.destroy();
      else if ("restart" in step) server.cut();
      else if (!("never" in step)) {
        await act(step);
        return false;
      }
      return true;
    };

    const runAll = async (steps: ReadonlyArray<HttpStep>): Promise<boolean> => {
      let answered = false;
      for (const step of steps) answered = (await run(step)) || answered;
      return answered;
    };
    const steps = names.reduce<ReadonlyArray<HttpStep> | undefined>((found, name) => found ?? take(name), undefined);
    const answered = steps !== undefined && (await runAll(steps));
    if (!answered) await byDefault();
    if (!line.stays && !steps?.some((step) => "never" in step)) line.end();
  };
};

/** The handler that does what the program says. */
export const followProgram = (program: HttpProgram): HttpHandler => {
  const answer = defaultAnswers(program, program.era);
  const play = makePlayer(program.on);
  /** The requests within whose answers event ids were given. */
  const origins = new Map<string, HttpExchange["request"]>();

  return async (exchange) => {
    if (refuse(exchange)) return;
    const { request } = exchange;
    const lastEventId = request.method === "GET" ? request.headers["last-event-id"] : undefined;
    const origin = origins.get(String(lastEventId));
    const line = lineOf(exchange, origin !== undefined);
    const message: Message = (origin ?? request).rpc ?? {};
    const own = String(request.rpc?.method ?? request.method);
    await play({
      exchange,
      line,
      message,
      names: lastEventId === undefined ? [own] : ["resume", own],
      byDefault: () => (origin ? line.message(answer(message)) : answerOn(line, exchange, answer)),
      onEventId: (id) => void origins.set(id, origin ?? request),
    });
  };
};
