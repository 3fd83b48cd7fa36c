import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { oauthChallenge, parseChallenges, scopesOf } from "../../../src/plugins/credentials/challenge.ts";

const plain = (header: string | undefined) =>
  parseChallenges(header).map(({ scheme, params }) => [scheme, { ...params }]);

describe("challenges", () => {
  it.each<[string | undefined, unknown]>([
    [undefined, []],
    ["", []],
    ["Bearer", [["bearer", {}]]],
    ['Bearer realm="a b", error="invalid_token"', [["bearer", { realm: "a b", error: "invalid_token" }]]],
    ["Bearer scope=read,error=x", [["bearer", { scope: "read", error: "x" }]]],
    ['Bearer Error = "x" , SCOPE="a"', [["bearer", { error: "x", scope: "a" }]]],
    [
      'Basic realm="x", Bearer error="y"',
      [
        ["basic", { realm: "x" }],
        ["bearer", { error: "y" }],
      ],
    ],
    [
      'DPoP algs="ES256", Bearer',
      [
        ["dpop", { algs: "ES256" }],
        ["bearer", {}],
      ],
    ],
    ['Bearer d="say \\"hi\\", error=\\"no\\"", e="f"', [["bearer", { d: 'say "hi", error="no"', e: "f" }]]],
    ['Bearer a="1", a="2"', [["bearer", { a: "1" }]]],
    ['Bearer __proto__="x"', [["bearer", { ["__proto__"]: "x" }]]],
    [
      'Bearer a="open',
      [
        ["bearer", {}],
        ["a", {}],
      ],
    ],
  ])("reads %s", (header, expected) => {
    expect(JSON.stringify(plain(header))).toBe(JSON.stringify(expected));
  });

  it("prefers the challenge that names an error", () => {
    expect({ ...oauthChallenge('Bearer realm="x", DPoP error="use_dpop_nonce"') }).toEqual({ error: "use_dpop_nonce" });
    expect({ ...oauthChallenge('Basic realm="x"') }).toEqual({});
  });

  it("reads any text, in time that grows with it", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 200 }), (text) => Array.isArray(parseChallenges(text))),
    );
    const started = performance.now();
    parseChallenges(`Bearer ${'a="b\\'.repeat(50_000)}`);
    parseChallenges(`Bearer ${"a=b, ".repeat(50_000)}`);
    expect(performance.now() - started).toBeLessThan(1_000);
  });

  it("splits scopes", () => {
    expect(scopesOf(" read  write read ")).toEqual(["read", "write"]);
    expect(scopesOf(undefined)).toEqual([]);
  });
});
