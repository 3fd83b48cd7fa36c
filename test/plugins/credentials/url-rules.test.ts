import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import {
  covers,
  isNative,
  isSecure,
  resourceMetadataUrls,
  resourceOf,
  sameIssuer,
  serverMetadataUrls,
} from "../../../src/plugins/credentials/url-rules.ts";

describe("url rules", () => {
  it.each([
    ["https://as.example", "https://as.example/", true],
    ["https://as.example/", "https://as.example", true],
    ["https://AS.example", "https://as.example", true],
    ["https://as.example:443", "https://as.example", true],
    ["https://as.example:8443", "https://as.example", false],
    ["https://as.example/tenant", "https://as.example/tenant", true],
    ["https://AS.example:443/tenant", "https://as.example/tenant", true],
    ["https://as.example/tenant", "https://as.example/tenant/", false],
    ["https://as.example/tenant/", "https://as.example/tenant", false],
    ["https://as.example/a", "https://as.example/b", false],
    ["https://as.example/Tenant", "https://as.example/tenant", false],
    ["https://as.example", "https://evil.example", false],
    ["http://as.example", "https://as.example", false],
    ["https://as.example", "not a url", false],
  ])("C-035: issuers %s and %s: same is %s", (a, b, same) => {
    expect(sameIssuer(a, b)).toBe(same);
    expect(sameIssuer(b, a)).toBe(same);
  });

  it.each([
    ["https://h.example", "https://h.example/mcp", true],
    ["https://h.example/", "https://h.example/mcp", true],
    ["https://h.example/mcp", "https://h.example/mcp", true],
    ["https://h.example/mcp/", "https://h.example/mcp", true],
    ["https://h.example/mcp", "https://h.example/mcp/a", true],
    ["https://h.example/mcp", "https://h.example/mcp2", false],
    ["https://h.example/mcp/a", "https://h.example/mcp", false],
    ["https://H.example:443/mcp", "https://h.example/mcp", true],
    ["https://other.example/mcp", "https://h.example/mcp", false],
    ["http://h.example/mcp", "https://h.example/mcp", false],
    ["https://h.example/mcp#part", "https://h.example/mcp", false],
    ["api://h.example/mcp", "https://h.example/mcp", false],
    ["mcp", "https://h.example/mcp", false],
  ])("C-034: the resource %s covers %s: %s", (resource, server, covered) => {
    expect(covers(resource, server)).toBe(covered);
  });

  it("covers every path below a resource, and none beside it", () => {
    const segment = fc.stringMatching(/^[a-z0-9]{1,6}$/);
    fc.assert(
      fc.property(
        fc.array(segment, { maxLength: 3 }),
        fc.array(segment, { maxLength: 3 }),
        segment,
        (base, below, tail) => {
          const resource = ["https://h.example", ...base].join("/");
          expect(covers(resource, [resource, ...below].join("/"))).toBe(true);
          if (base.length > 0) expect(covers(resource, `${resource}${tail}`)).toBe(false);
        },
      ),
    );
  });

  it("secrets go to https and to this machine, and nowhere else", () => {
    const yes = ["https://x.example", "http://localhost:1", "http://127.0.0.1", "http://127.9.8.7/a", "http://[::1]:3"];
    const no = [
      "http://x.example",
      "http://localhost.x.example",
      "http://127.0.0.1.x.example",
      "ftp://localhost",
      "x",
      "javascript:0",
    ];
    expect(yes.filter((url) => !isSecure(url))).toEqual([]);
    expect(no.filter((url) => isSecure(url))).toEqual([]);
  });

  it("tells redirect URIs of applications from those of web sites", () => {
    expect(["http://127.0.0.1:1/callback", "http://localhost/c", "com.example.app:/c"].every(isNative)).toBe(true);
    expect(isNative("https://app.example/c")).toBe(false);
  });

  it("C-032: builds the well-known URLs in the order of the specifications", () => {
    expect(resourceMetadataUrls("https://h.example/v1/mcp?x=1")).toEqual([
      "https://h.example/.well-known/oauth-protected-resource/v1/mcp?x=1",
      "https://h.example/.well-known/oauth-protected-resource",
    ]);
    expect(resourceMetadataUrls("https://h.example")).toEqual([
      "https://h.example/.well-known/oauth-protected-resource",
    ]);
    expect(serverMetadataUrls("https://as.example/tenant/")).toEqual([
      "https://as.example/.well-known/oauth-authorization-server/tenant",
      "https://as.example/.well-known/openid-configuration/tenant",
      "https://as.example/tenant/.well-known/openid-configuration",
    ]);
    expect(serverMetadataUrls("https://as.example")).toEqual([
      "https://as.example/.well-known/oauth-authorization-server",
      "https://as.example/.well-known/openid-configuration",
    ]);
  });

  it("C-034: names a server without metadata by its URL, without what is secret or meaningless", () => {
    expect(resourceOf("https://h.example/")).toBe("https://h.example");
    expect(resourceOf("https://user:pass@h.example/mcp?key=secret#part")).toBe("https://h.example/mcp");
    expect(resourceOf("https://h.example/mcp/")).toBe("https://h.example/mcp/");
  });
});
