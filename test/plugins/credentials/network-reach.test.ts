import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import {
  type NetworkPart,
  networkPartOf,
  outOfReach,
  reachOf,
} from "../../../src/plugins/credentials/network-reach.ts";

const table: Readonly<Record<NetworkPart, ReadonlyArray<string>>> = {
  loopback: [
    "127.0.0.1",
    "127.255.255.254",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "127.0.0.1.",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "api.localhost",
    "a.b.LocalHost.",
    "１２７.０.０.１",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[2002:7f00:1::]",
  ],
  private: [
    "10.0.0.0",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "100.64.0.1",
    "100.127.255.255",
    "0xa000001",
    "[fc00::1]",
    "[fd12:3456:789a::1]",
    "[fec0::1]",
    "[::ffff:10.0.0.1]",
    "[64:ff9b:1::1]",
    "[2002:c0a8:1::]",
  ],
  "link-local": [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "[fe80::1]",
    "[febf::1]",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
  ],
  reserved: [
    "0.0.0.0",
    "0",
    "0.1.2.3",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::ffff:0.0.0.0]",
    "[ff02::1]",
    "[100::1]",
    "[2001:db8::1]",
    "[2001::1]",
    "[4000::1]",
  ],
  public: [
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "169.255.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "as.example",
    "localhost.example",
    "notlocalhost",
    "10.0.0.1.example",
    "[2606:4700::1]",
    "[2a00:1450::8]",
    "[::ffff:1.1.1.1]",
    "[64:ff9b::101:101]",
  ],
};

const parts = Object.keys(table) as ReadonlyArray<NetworkPart>;

/** An IPv4 address in the ways in which URLs write one. */
const spellings = (n: number): ReadonlyArray<string> => {
  const bytes = [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
  const hex = (value: number) => `0x${value.toString(16)}`;
  const octal = (value: number) => `0${value.toString(8)}`;
  const [high, low] = [(n >>> 16).toString(16), (n & 0xffff).toString(16)];
  return [
    String(n),
    hex(n),
    octal(n),
    bytes.join("."),
    bytes.map(hex).join("."),
    bytes.map(octal).join("."),
    `${bytes[0]}.${n & 0xffffff}`,
    `[::ffff:${high}:${low}]`,
    `[0:0:0:0:0:ffff:${bytes.join(".")}]`,
    `[64:ff9b::${high}:${low}]`,
    `[2002:${high}:${low}::1]`,
  ];
};

describe("parts of the network", () => {
  for (const part of parts)
    it.each(table[part])(`%s is ${part}`, (host) => {
      expect(networkPartOf(`https://${host}/path`)).toBe(part);
      expect(networkPartOf(`http://user@${host}:8443/`)).toBe(part);
    });

  it("an IPv4 address is in one part, however it is written", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), (n) => {
        const plain = networkPartOf(`https://${[n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255].join(".")}/`);
        for (const host of spellings(n)) expect([host, networkPartOf(`https://${host}/`)]).toEqual([host, plain]);
      }),
      { numRuns: 300 },
    );
  });

  it("every address of a block is in its part, and each has exactly one", () => {
    const blocks: ReadonlyArray<readonly [number, number, NetworkPart]> = [
      [0x0a000000, 24, "private"],
      [0xac100000, 20, "private"],
      [0xc0a80000, 16, "private"],
      [0x64400000, 22, "private"],
      [0x7f000000, 24, "loopback"],
      [0xa9fe0000, 16, "link-local"],
      [0x00000000, 24, "reserved"],
      [0xe0000000, 29, "reserved"],
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...blocks),
        fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
        (block, at) => {
          const [base, bits, part] = block;
          expect(networkPartOf(`https://${base + Math.floor(at * 2 ** bits)}/`)).toBe(part);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("every IPv6 address of a block is in its part", () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const rest = fc.tuple(group, group, group, group, group, group, group);
    const blocks: ReadonlyArray<readonly [number, number, NetworkPart]> = [
      [0xfc00, 0xfdff, "private"],
      [0xfe80, 0xfebf, "link-local"],
      [0xfec0, 0xfeff, "private"],
      [0xff00, 0xffff, "reserved"],
      [0x2400, 0x2fff, "public"],
    ];
    fc.assert(
      fc.property(fc.constantFrom(...blocks), fc.nat(), rest, ([first, last, part], n, others) => {
        const head = first + (n % (last - first + 1));
        const host = [head, ...others].map((one) => one.toString(16)).join(":");
        expect([host, networkPartOf(`https://[${host}]/`)]).toEqual([host, part]);
      }),
      { numRuns: 300 },
    );
  });
});

describe("reach", () => {
  it("is the public network, and the parts in which the host's own URLs are", () => {
    const hostOf = (part: NetworkPart) => `https://${table[part][0]}/`;
    for (const own of parts) {
      const reach = reachOf(hostOf(own), undefined, "not a URL");
      for (const other of parts)
        expect([own, other, outOfReach(hostOf(other), reach) === undefined]).toEqual([
          own,
          other,
          other === own || other === "public",
        ]);
    }
  });

  it("a loopback endpoint leads to no private network, and the other way round", () => {
    expect(outOfReach("https://10.0.0.1/", reachOf("http://127.0.0.1:1/"))).toMatch(/private network/);
    expect(outOfReach("http://localhost:1/", reachOf("https://10.0.0.1/"))).toMatch(/on this machine/);
    expect(outOfReach("https://10.0.0.1/", reachOf("http://127.0.0.1:1/", "https://192.168.1.1/"))).toBeUndefined();
  });
});
