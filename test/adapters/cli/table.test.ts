import { describe, expect, it } from "vitest";
import { dated, middle, timeInWords, wrapped } from "../../../src/adapters/cli/shorten.ts";
import { factsTable, id, listing, prose, spare, time } from "../../../src/adapters/cli/table.ts";
import { plainly, type View } from "../../../src/adapters/cli/terminal.ts";

const now = new Date("2026-01-01T00:10:00.000Z");
const view = (width: number | null): View => ({ paint: plainly, width, now, reach: "" });
const item = {
  txId: "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d",
  signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  at: "2026-01-01T00:06:00.000Z",
  kind: "kind",
  why: "the key may be stolen, and nobody knows by whom",
};
const columns = {
  transaction: id<typeof item>("txId"),
  signer: id<typeof item>("signer", 1),
  at: time<typeof item>("at"),
  kind: spare<typeof item>("kind", 2),
  why: prose<typeof item>("why"),
};
const widest = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

describe("a table", () => {
  it("has whole ids and times without a terminal", () => {
    const [, line = ""] = listing([item], view(null), columns).split("\n");
    expect(line.split(/ {2,}/)).toEqual(Object.values(item));
  });

  it.each([200, 120, 100, 80, 60, 40])("is never wider than a terminal of %i columns", (width) => {
    const text = listing([item, { ...item, why: `${"x".repeat(200)} y` }], view(width), columns);
    expect(widest(text)).toBeLessThanOrEqual(width);
  });

  it("shortens ids in the middle, shows ages, and wraps the last column", () => {
    const [, line = "", next = ""] = listing([item], view(80), columns).split("\n");
    expect(line).toMatch(/^019a4b\S*…\S*7c8d {2}0xf39F\S*…\S*2266 {2}4 min ago {2}kind {2}the key may be stolen/);
    expect(next.trimStart()).toBe("knows by whom");
  });

  it("leaves out the columns that matter least first", () => {
    const heads = (width: number) => listing([item], view(width), columns).split("\n")[0]?.split(/ {2,}/);
    expect(heads(80)).toEqual(["transaction", "signer", "at", "kind", "why"]);
    expect(heads(64)).toEqual(["transaction", "signer", "at", "why"]);
    expect(heads(52)).toEqual(["transaction", "at", "why"]);
  });

  it("leaves out columns without a value, and cuts no cell beyond recognition", () => {
    const named = { ...columns, name: spare<typeof item>(() => "", 0) };
    expect(listing([item], view(80), named)).not.toContain("name");
    expect(listing([item], view(null), named)).toContain("name");
    const plain = { kind: "kind", at: "at", txId: "txId" } as const;
    expect(listing([item], view(40), plain)).toMatch(/^kind {2}at\s*\n/);
    expect(listing([item], view(44), plain)).toContain("019a4b7e-8a…");
  });

  it("removes control characters before it measures a cell", () => {
    const text = listing([{ ...item, why: "a\u001b[2Jb\nc" }], view(120), columns);
    expect(text).toContain("a [2Jb c");
    expect(text).not.toContain("\u001b");
  });
});

describe("a list of facts", () => {
  it("wraps prose and never cuts an id", () => {
    const text = factsTable({ hash: `0x${"ab".repeat(32)}`, reason: "word ".repeat(30).trim() }, view(60));
    expect(text).toContain(`0x${"ab".repeat(32)}\n`);
    expect(widest(text.slice(text.indexOf("\n")))).toBeLessThanOrEqual(60);
  });
});

describe("a shortened text", () => {
  it("keeps both ends of an id", () => {
    expect(middle(item.signer, 11)).toBe("0xf39F…2266");
    expect(middle(item.txId, 13)).toBe("019a4b…6b7c8d");
    expect(middle("short", 13)).toBe("short");
  });

  it("shows the age of a timestamp, or the time until it, and leaves any other text", () => {
    expect(timeInWords("2026-01-01T00:09:56.000Z", now)).toBe("4 s ago");
    expect(timeInWords("2026-01-01T00:10:09.500Z", now)).toBe("in 9 s");
    expect(timeInWords("not sent", now)).toBe("not sent");
    expect(dated(item.at, view(80))).toBe(`${item.at} (4 min ago)`);
    expect(dated(item.at, view(null))).toBe(item.at);
  });

  it("breaks at blanks, and keeps a long word whole unless it may be shortened", () => {
    expect(wrapped("aa bb cccccccc", 5)).toEqual(["aa bb", "cccccccc"]);
    expect(wrapped("aa bb cccccccc", 5, middle)).toEqual(["aa bb", "cc…cc"]);
  });
});
