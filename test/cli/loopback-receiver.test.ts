import { describe, expect, it } from "@effect/vitest";
import { openLoopbackReceiver } from "../../src/cli/loopback-receiver.ts";

const get = async (url: string): Promise<number> => {
  const response = await fetch(url);
  await response.body?.cancel();
  return response.status;
};

describe("the loopback receiver", () => {
  it("hands over the redirect with the right state, and turns anything else away", async () => {
    const receiver = await openLoopbackReceiver();
    expect(receiver.redirectUri).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
    expect(await get(`${receiver.redirectUri}?code=early&state=s1`)).toBe(404);
    const received = receiver.receiveRedirect("s1");
    expect(await get(`${receiver.redirectUri}?code=forged&state=other`)).toBe(404);
    expect(await get(`${receiver.redirectUri}?code=forged`)).toBe(404);
    expect(await get(receiver.redirectUri.replace("callback", "favicon.ico?state=s1"))).toBe(404);
    expect(await get(`${receiver.redirectUri}?code=c&state=s1&iss=https%3A%2F%2Fas.example`)).toBe(200);
    expect(await received).toBe(`${receiver.redirectUri}?code=c&state=s1&iss=https%3A%2F%2Fas.example`);
    expect(await get(`${receiver.redirectUri}?code=again&state=s1`)).toBe(404);
    await receiver.close();
    await expect(fetch(receiver.redirectUri)).rejects.toThrow();
  });

  it("closing rejects whoever waits", async () => {
    const receiver = await openLoopbackReceiver();
    const received = receiver.receiveRedirect("s1");
    await Promise.all([expect(received).rejects.toMatchObject({ _tag: "Cancelled" }), receiver.close()]);
  });

  it("a port that is taken is an error", async () => {
    const first = await openLoopbackReceiver();
    const port = Number(new URL(first.redirectUri).port);
    await expect(openLoopbackReceiver({ port })).rejects.toThrow();
    await first.close();
  });

  it("the page shows nothing of the login and loads nothing", async () => {
    const receiver = await openLoopbackReceiver();
    const received = receiver.receiveRedirect("s1");
    const response = await fetch(`${receiver.redirectUri}?code=very-secret-code&state=s1`);
    expect(await response.text()).not.toContain("very-secret-code");
    expect(response.headers.get("content-security-policy")).toBe("default-src 'none'");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    await received;
    await receiver.close();
  });
});
