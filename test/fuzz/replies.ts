/** What an HTTP server may answer a request with: any status, headers, type, body and end. */
import * as fc from "fast-check";
import { chunksOf, type Damage, damage, damaged, wireText } from "./bytes.ts";
import { OpenBody, respond } from "./net.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { type SseEvent, sseEvent, sseText } from "./sse.ts";

type Around = Omit<SseEvent, "data">;

export interface Reply {
  readonly status: number;
  readonly type: string;
  readonly headers: ReadonlyArray<readonly [string, string]>;
  readonly messages: ReadonlyArray<unknown>;
  readonly events: ReadonlyArray<Around>;
  readonly damage: Damage;
  readonly ending: "end" | "break" | "open";
}

const sseType = "text/event-stream";

const header: fc.Arbitrary<readonly [string, string]> = fc.constantFrom<readonly [string, string]>(
  ["location", "/other"],
  ["location", "http://other.example/"],
  ["location", "http://["],
  ["retry-after", "0"],
  ["retry-after", "1"],
  ["retry-after", "99999999999999999999999"],
  ["retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"],
  ["retry-after", "x"],
  ["www-authenticate", 'Bearer error="invalid_token", error_description="<b>no</b>"'],
  ["www-authenticate", 'Bearer error="insufficient_scope", scope="a b"'],
  ["www-authenticate", 'Bearer error="'],
  ["www-authenticate", ',,,="\\'],
  ["mcp-session-id", "other"],
  ["mcp-session-id", ""],
  ["mcp-session-id", "ÿ"],
  ["content-length", "99999999999"],
  ["content-length", "-1"],
  ["content-encoding", "x"],
  ["dpop-nonce", "n"],
);

const status = fc.oneof(
  { weight: 20, arbitrary: fc.constant(200) },
  {
    weight: 5,
    arbitrary: fc.constantFrom(
      201,
      202,
      204,
      205,
      206,
      226,
      300,
      301,
      302,
      304,
      307,
      308,
      400,
      401,
      403,
      404,
      405,
      406,
      409,
      410,
      415,
      422,
      429,
      500,
      501,
      502,
      503,
      504,
      599,
    ),
  },
);

const type = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("application/json", "application/json; charset=utf-8") },
  { weight: 8, arbitrary: fc.constantFrom(sseType, "Text/Event-Stream; x=y") },
  { weight: 1, arbitrary: fc.constantFrom("", "text/html", "application/octet-stream", ";", "text/plain") },
);

export const replyTo = (method: string, most = 4): fc.Arbitrary<Reply> =>
  fc.record({
    status,
    type,
    headers: fc.oneof(
      { weight: 3, arbitrary: fc.constant([]) },
      { weight: 1, arbitrary: fc.array(header, { maxLength: 2 }) },
    ),
    messages: fc.array(serverMessage(method), { maxLength: most, size: "max" }),
    events: fc.array(sseEvent, { minLength: most, maxLength: most }),
    damage,
    ending: fc.oneof(
      { weight: 8, arbitrary: fc.constant("end" as const) },
      { weight: 2, arbitrary: fc.constantFrom("break" as const, "open") },
    ),
  });

export const isStream = (reply: Reply): boolean => reply.type.toLowerCase().startsWith(sseType);

export const streamText = (messages: ReadonlyArray<unknown>, events: ReadonlyArray<Around>): string =>
  messages.map((message, i) => sseText(events[i % events.length]!, message)).join("");

/** The bytes of a reply to the request of this id. */
export const bytesOf = (reply: Reply, id: number): Uint8Array => {
  const messages = reply.messages.map((message) => addressed(message, id));
  const text = isStream(reply) ? streamText(messages, reply.events) : messages.map(wireText).join("\n");
  return damaged(text, reply.damage);
};

/** The response, and its body where that stays open. */
export const responseOf = (
  reply: Reply,
  id: number,
  signal: AbortSignal | undefined,
): { readonly response: Response; readonly body: OpenBody } => {
  const body = new OpenBody(signal);
  body.write(chunksOf(bytesOf(reply, id), reply.damage.splits));
  if (reply.ending === "end") body.end();
  if (reply.ending === "break") body.break();
  const headers = reply.type === "" ? reply.headers : [["content-type", reply.type] as const, ...reply.headers];
  return { response: respond(reply.status, headers, body.stream), body };
};

export const countReply = ({ messages }: Reply): number =>
  Math.max(
    1,
    messages.reduce<number>((sum, message) => sum + countOf(message), 0),
  );
