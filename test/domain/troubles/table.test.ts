import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ofTransaction, ofUnreachable } from "../../../src/domain/troubles/find.ts";
import { condensed, revived, type Trouble, trouble } from "../../../src/domain/troubles/rows.ts";
import { ALERT_CODES, rowOf, TROUBLE_CODES, type TroubleCode } from "../../../src/domain/troubles/table.ts";

const NOW = new Date("2026-11-02T10:00:00.000Z");
const ago = (seconds: number) => new Date(NOW.getTime() - seconds * 1_000);
const signer = (n: number) => `0x${String(n).repeat(40)}` as const;
const onLane = (code: TroubleCode, nonce: number, since = ago(nonce), of = 1): Trouble => {
  const about = { lane: { chainId: 5, signer: signer(of) }, txId: `${of}-${nonce}`, nonce, since, open: 8 - nonce };
  return ofTransaction(code, about, "t");
};

/**
 * The code `NONCE_DRIFT` is used for two cases. As an alert, it reports that the signer's nonce changed and that the
 * lane follows the change. In the table of troubles, it means that endpoints contradict each other about a nonce.
 */
const BY_CASE = new Set(["NONCE_DRIFT"]);

describe("the table of troubles", () => {
  it("refers, in its fields `hides` and `alert`, only to codes that exist", () => {
    for (const code of TROUBLE_CODES) {
      const { hides = [], alert } = rowOf(code);
      for (const hidden of hides) expect(TROUBLE_CODES, `${code} hides ${hidden}`).toContain(hidden);
      if (alert !== undefined) expect(ALERT_CODES, `${code} is alerted as ${alert}`).toContain(alert);
      expect(hides, `${code} hides itself`).not.toContain(code);
    }
  });

  it("has the same severity for each alert as the source code that raises it", () => {
    const root = new URL("../../../src/", import.meta.url);
    const files = readdirSync(root, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
    const raised = files.flatMap((file) => [
      ...readFileSync(new URL(file, root), "utf8").matchAll(/severity: "([A-Z]+)", code: "([A-Z_]+)"/g),
    ]);
    expect(raised.length).toBeGreaterThan(20);
    for (const [, severity, code = ""] of raised) {
      if (!BY_CASE.has(code)) expect([code, severity]).toEqual([code, rowOf(code as TroubleCode).severity]);
    }
  });
});

describe("the list of problems for operators", () => {
  it("has one row for all transactions of a lane with the same cause", () => {
    const seven = [1, 2, 3, 4, 5, 6, 7].map((nonce) => onLane("INSUFFICIENT_FUNDS", nonce));
    expect(condensed(seven)).toMatchObject([{ nonce: 1, waiting: 6, since: ago(7) }]);
    expect(condensed([...seven, onLane("INSUFFICIENT_FUNDS", 1, ago(1), 2)])).toHaveLength(2);
  });

  it("hides the consequences of a cause only on the same lane", () => {
    const deep = trouble("PENDING_DEEP", { chainId: 5, signer: signer(1), sentence: "s" });
    const elsewhere = { ...deep, id: "other", signer: signer(2) };
    const found = condensed([onLane("STUCK", 1), deep, elsewhere]);
    expect(found.map(({ code, signer: of }) => [code, of])).toEqual([
      ["STUCK", signer(1)],
      ["PENDING_DEEP", signer(2)],
    ]);
  });

  it("counts the waiting transactions of all lanes of an unreachable chain", () => {
    const rows = [1, 2, 3].map((of) => onLane("CHAIN_UNREACHABLE", 6, ago(1), of));
    expect(condensed([ofUnreachable(5, ago(9), 0), ...rows])).toMatchObject([
      { code: "CHAIN_UNREACHABLE", txId: null, since: ago(9), waiting: 6 },
    ]);
  });

  it("has a separate row for each transaction on hold", () => {
    expect(condensed([onLane("HELD", 1), onLane("HELD", 2)])).toHaveLength(2);
  });
});

it("a trouble row is unchanged after it was stored as JSON and read back", () => {
  const row = { ...onLane("STUCK", 1), asOf: NOW };
  expect(revived(JSON.parse(JSON.stringify(row)))).toEqual(row);
});
