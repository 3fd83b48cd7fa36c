/**
 * Pure: which parts of the network a URL that came from the other side may lead to, so
 * that no server uses its client to reach what only the client can reach (CWE-918).
 * Addresses: IANA special-purpose registries (RFC 6890, RFC 6598, RFC 4193).
 */

/** A part of the network. A DNS name counts as public: it is not resolved here. */
export type NetworkPart = "public" | "loopback" | "private" | "link-local" | "reserved";

/** First and last address of a block, IPv4 as a number. */
type Block = readonly [base: string, bits: number, part: NetworkPart];

const ipv4Blocks: ReadonlyArray<Block> = [
  // On many systems a connection to 0.0.0.0 reaches this machine.
  ["0.0.0.0", 8, "reserved"],
  ["10.0.0.0", 8, "private"],
  ["100.64.0.0", 10, "private"],
  ["127.0.0.0", 8, "loopback"],
  ["169.254.0.0", 16, "link-local"],
  ["172.16.0.0", 12, "private"],
  ["192.0.0.0", 24, "reserved"],
  ["192.0.2.0", 24, "reserved"],
  ["192.168.0.0", 16, "private"],
  ["198.18.0.0", 15, "reserved"],
  ["198.51.100.0", 24, "reserved"],
  ["203.0.113.0", 24, "reserved"],
  ["224.0.0.0", 3, "reserved"],
];

const toNumber = (address: string): number => address.split(".").reduce((sum, byte) => sum * 256 + Number(byte), 0);

const partOfIpv4 = (address: number): NetworkPart => {
  const inside = ([base, bits]: Block): boolean =>
    Math.floor(address / 2 ** (32 - bits)) === Math.floor(toNumber(base) / 2 ** (32 - bits));
  return ipv4Blocks.find(inside)?.[2] ?? "public";
};

/** The eight groups of an address as `URL` writes it. */
const groupsOf = (address: string): ReadonlyArray<number> => {
  const [head = "", tail] = address.split("::");
  const groups = (text: string) => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [left, right] = [groups(head), groups(tail ?? "")];
  const gap = tail === undefined ? 0 : 8 - left.length - right.length;
  return [...left, ...Array.from({ length: gap }, () => 0), ...right];
};

const partOfIpv6 = (address: string): NetworkPart => {
  const groups = groupsOf(address);
  const [a = 0, b = 0, c = 0, , e, f, g = 0, h = 0] = groups;
  const ipv4 = (high: number, low: number): NetworkPart => partOfIpv4(high * 65_536 + low);
  const zeros = (count: number): boolean => groups.slice(0, count).every((group) => group === 0);
  if (zeros(7) && h === 1) return "loopback";
  if (zeros(8)) return "reserved";
  // Addresses that hold an IPv4 address lead where that one leads: compatible, mapped, translated, NAT64, 6to4.
  if (zeros(6) || (zeros(5) && f === 0xffff) || (zeros(4) && e === 0xffff && f === 0)) return ipv4(g, h);
  if (a === 0x64 && b === 0xff9b) return c === 1 ? "private" : ipv4(g, h);
  if (a === 0x2002) return ipv4(b, c);
  if ((a & 0xfe00) === 0xfc00 || (a & 0xffc0) === 0xfec0) return "private";
  if ((a & 0xffc0) === 0xfe80) return "link-local";
  // Of the rest only 2000::/3 is in use; in it 2001::/23 is for protocols, 2001:db8::/32 and 3fff::/20 for documents.
  const documents = (a === 0x2001 && b === 0xdb8) || (a === 0x3fff && b < 0x1000);
  const protocols = a === 0x2001 && b < 0x200;
  return (a & 0xe000) === 0x2000 && !documents && !protocols ? "public" : "reserved";
};

/** Where the host of a URL is, by its address. `URL` has brought decimal, octal and hexadecimal forms into one. */
export const networkPartOf = (url: string): NetworkPart => {
  const host = new URL(url).hostname.toLowerCase().replace(/\.+$/, "");
  if (host.startsWith("[")) return partOfIpv6(host.slice(1, -1));
  if (/^\d+(\.\d+){3}$/.test(host)) return partOfIpv4(toNumber(host));
  return host === "localhost" || host.endsWith(".localhost") ? "loopback" : "public";
};

/** The parts that may be asked. */
export type NetworkReach = ReadonlySet<NetworkPart>;

/** Public, and the parts in which the URLs are that the host itself gave. */
export const reachOf = (...given: ReadonlyArray<string | undefined>): NetworkReach =>
  new Set(["public", ...given.flatMap((url) => (url !== undefined && URL.canParse(url) ? [networkPartOf(url)] : []))]);

const named: Readonly<Record<NetworkPart, string>> = {
  public: "a public address",
  loopback: "on this machine",
  private: "in a private network",
  "link-local": "a link-local address",
  reserved: "a reserved address",
};

/** Why a URL is not asked, in words that follow the URL; `undefined` when it may be. */
export const outOfReach = (url: string, reach: NetworkReach): string | undefined => {
  const part = networkPartOf(url);
  return reach.has(part) ? undefined : `is ${named[part]}, where the server itself is not, and was not asked`;
};
