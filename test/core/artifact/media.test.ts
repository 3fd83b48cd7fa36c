import { describe, expect, it } from "@effect/vitest";
import * as Base64 from "effect/encoding/Base64";
import * as fc from "fast-check";
import { base64Problem, isMedia, makeMedia, type Media, mediaBytes } from "../../../src/core/artifact/media.ts";
import { safeName } from "../../../src/core/artifact/media-name.ts";
import { agrees, sniffType } from "../../../src/core/artifact/media-type.ts";

const latin1 = (text: string): Uint8Array => Uint8Array.from(text, (char) => char.charCodeAt(0));
const make = (
  fields: { data: unknown; mimeType?: unknown; uri?: unknown; type?: "image" | "audio" | "resource" },
  max = 1e6,
) => {
  const problems: Array<string> = [];
  const media = makeMedia({ type: "resource", mimeType: undefined, ...fields }, max, (problem) =>
    problems.push(problem),
  );
  return { media, problems };
};

describe("media", () => {
  it("keeps any bytes as they are, with size and hash", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const { media, problems } = make({ data: Base64.encode(bytes), mimeType: "application/octet-stream" });
        expect(isMedia(media)).toBe(true);
        expect(mediaBytes(media as Media)).toEqual(bytes);
        expect((media as Media).size).toBe(bytes.length);
        expect(problems).toEqual([]);
      }),
      { numRuns: 100 },
    );
    const { media } = make({ data: Base64.encode("hello") });
    expect(media).toMatchObject({ sha256: "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" });
  });

  it("C-068: what is no standard Base64 becomes a placeholder with a diagnostic and keeps what was sent", () => {
    const ok = Base64.encode("any bytes at all??>>");
    const bad = [
      ok.slice(0, -1),
      `${ok}A`,
      ok.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") + "-_",
      `data:text/plain;base64,${ok}`,
      `${ok.slice(0, 8)}\n${ok.slice(8)}`,
      `${ok.slice(0, 8)}\r\n${ok.slice(8)}`,
      "AA=A",
      "====",
      "é===",
      42,
      null,
      undefined,
    ];
    for (const data of bad) {
      const { media, problems } = make({ data, type: "audio", mimeType: "audio/wav" });
      expect(isMedia(media), String(data)).toBe(false);
      expect(media).toMatchObject({ type: "audio", mimeType: "audio/wav", data });
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(/^audio content (is no Base64|has no data)/);
    }
    expect(base64Problem("")).toBeUndefined();
    expect(base64Problem(ok)).toBeUndefined();
  });

  it("C-068: the size is checked on the encoded length, before anything is decoded", () => {
    // Not decodable: were it decoded first, the problem would be another one.
    const { media, problems } = make({ data: "!".repeat(4000) }, 1000);
    expect(isMedia(media)).toBe(false);
    expect(problems[0]).toMatch(/has 3000 bytes, more than 1000, and was not decoded/);
  });

  it("C-068: the bytes tell the type where the server says none or lies", () => {
    const png = Base64.encode(latin1("\x89PNG\r\n\x1a\n0000"));
    expect(make({ data: png }).media).toMatchObject({ mimeType: "image/png" });
    expect(make({ data: png, mimeType: "application/octet-stream" })).toMatchObject({
      media: { mimeType: "image/png" },
      problems: [],
    });
    const lying = make({ data: png, mimeType: "audio/mpeg" });
    expect(lying.media).toMatchObject({ mimeType: "image/png", declaredType: "audio/mpeg" });
    expect(lying.problems[0]).toMatch(/declared as "audio\/mpeg" and is image\/png/);
    const plain = make({ data: Base64.encode("just text"), mimeType: "text/csv; charset=utf-8" });
    expect(plain).toMatchObject({ media: { mimeType: "text/csv; charset=utf-8" }, problems: [] });
    expect(make({ data: Base64.encode("just text") }).media).toMatchObject({ mimeType: "application/octet-stream" });
  });

  it("knows the usual formats and their other names", () => {
    const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
    for (const [head, type, alias] of [
      ["\xff\xd8\xff\xe0", "image/jpeg", "image/jpg"],
      ["GIF89a", "image/gif", "image/gif"],
      ["RIFF0000WEBPVP8 ", "image/webp", "image/webp"],
      ["RIFF0000WAVEfmt ", "audio/wav", "audio/x-wav"],
      ["ID3\x03", "audio/mpeg", "audio/mp3"],
      ["OggS", "audio/ogg", "video/ogg"],
      ["fLaC", "audio/flac", "audio/x-flac"],
      ["0000ftypM4A 0000", "audio/mp4", "audio/x-m4a"],
      ["0000ftypisom0000", "video/mp4", "audio/mp4"],
      ["%PDF-1.7", "application/pdf", "application/x-pdf"],
      ["PK\x03\x04", "application/zip", docx],
      ["\x1f\x8b\x08", "application/gzip", "application/x-tar+gzip"],
    ] as const) {
      expect(sniffType(latin1(head))).toBe(type);
      expect(agrees(alias, type), alias).toBe(true);
      expect(agrees("text/html", type)).toBe(false);
    }
    expect(sniffType(latin1("RIFF"))).toBeUndefined();
    expect(sniffType(new Uint8Array())).toBeUndefined();
  });

  it("C-068: file names are safe, whatever the uri is", () => {
    expect(safeName("file:///srv/../../etc/passwd")).toBe("passwd");
    expect(safeName("file:///a/b/report final.pdf?x=1#y")).toBe("report_final.pdf");
    expect(safeName("file:///a/%2e%2e%2f%2e%2e%2fevil.sh")).toBe("evil.sh");
    expect(safeName("C:\\temp\\..\\x.txt")).toBe("x.txt");
    expect(safeName("file:///a/\u0000ev\u001bil\u202etxt.exe")).toBe("_ev_il_txt.exe".replace(/^_/, ""));
    expect(safeName("file:///CON.txt")).toBe("file-CON.txt");
    expect(safeName("file:///.bashrc")).toBe("bashrc");
    expect(safeName("file:///%E0%A4%A")).toBe("%E0%A4%A");
    for (const uri of ["", "file:///", "..", "../..", "file:///...", 7, undefined, null])
      expect(safeName(uri), String(uri)).toBeUndefined();
    const long = safeName(`file:///${"😀a".repeat(300)}.tar.gz`)!;
    expect(long.length).toBeLessThanOrEqual(100);
    expect(long).toMatch(/\.gz$/);
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), (text) => {
        const name = safeName(`file:///${text}`);
        if (name === undefined) return;
        expect(name).not.toMatch(/[/\\:*?"<>|]|\p{Cc}|\p{Surrogate}/u);
        expect(name).not.toMatch(/^\.|\.$|^$/);
        expect(name.length).toBeLessThanOrEqual(105);
      }),
      { numRuns: 300 },
    );
    const { media } = make({ data: Base64.encode(latin1("%PDF-1.7")), uri: "file:///" });
    expect((media as Media).name).toMatch(/^resource-[0-9a-f]{8}\.pdf$/);
  });
});
