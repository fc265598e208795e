import { describe, expect, it } from "vitest";
import { type HeldNonce, type NonceHolders, spansOf } from "../../../src/domain/nonces/nonce-spans.ts";

const nothing: NonceHolders = { transactions: [], reservations: [], holes: [] };
const tx = (nonce: number, state: HeldNonce["state"], rest: Partial<HeldNonce> = {}): HeldNonce => {
  return { nonce, txId: `tx-${nonce}`, state, subState: null, held: false, ...rest };
};
const shown = (from: number, to: number, holders: Partial<NonceHolders>) =>
  spansOf(from, to, { ...nothing, ...holders }).map(({ from, to, kind, txId, reservationId, detail }) =>
    [`${from}-${to}`, kind, txId ?? reservationId, detail].filter((each) => each !== undefined).join(" "),
  );

describe("the list of a lane's nonce ranges by status", () => {
  it("merges neighbours of the same status", () => {
    const transactions = [
      tx(2, "CONFIRMED"),
      tx(3, "CONFIRMED", { subState: "REPLACED" }),
      tx(4, "FAILED_FINAL", { subState: "REVERTED" }),
      tx(5, "FAILED_FINAL", { subState: "NONCE_CONSUMED_EXTERNALLY" }),
      tx(6, "TRACKING", { subState: "MINED" }),
      tx(8, "STUCK"),
      tx(10, "TRACKING", { subState: "BROADCAST" }),
      tx(11, "TRACKING", { subState: "PENDING" }),
      tx(12, "TRACKING", { subState: "UNKNOWN_SUBMIT_RESULT" }),
      tx(13, "TRACKING", { subState: "BROADCAST", held: true }),
      tx(14, "ALLOCATED"),
      tx(15, "ALLOCATED"),
    ];
    const reservations = [{ nonce: 9, reservationId: "r-9", state: "RESERVED" as const }];
    expect(shown(0, 15, { transactions, reservations, holes: [{ nonce: 7, detail: "released" }] })).toEqual([
      "0-1 foreign",
      "2-3 final",
      "4-4 failed tx-4 REVERTED",
      "5-5 foreign tx-5 NONCE_CONSUMED_EXTERNALLY",
      "6-6 mined",
      "7-7 hole released",
      "8-8 stuck tx-8",
      "9-9 reserved r-9",
      "10-11 inFlight",
      "12-12 inFlight tx-12 UNKNOWN_SUBMIT_RESULT",
      "13-13 held tx-13",
      "14-15 queued",
    ]);
  });

  it("shows a used reservation as a transaction", () => {
    const reservations = (["SUBMITTED", "EXPIRED"] as const).map((state, at) => {
      return { nonce: at, reservationId: `r-${at}`, state };
    });
    const holes = [{ nonce: 1, detail: "expired" }];
    expect(shown(0, 1, { transactions: [tx(0, "TRACKING")], reservations, holes })).toEqual([
      "0-0 inFlight",
      "1-1 hole expired",
    ]);
  });

  it("shows no reservation that was released", () => {
    const reservations = [{ nonce: 0, reservationId: "r", state: "RELEASED" as const }];
    expect(shown(0, 0, { transactions: [], reservations, holes: [] })).toEqual(["0-0 foreign"]);
  });

  it("covers exactly the requested range", () => {
    const transactions = Array.from({ length: 50 }, (_, nonce) => tx(nonce, nonce % 7 === 0 ? "STUCK" : "CONFIRMED"));
    const spans = spansOf(3, 40, { ...nothing, transactions });
    expect(spans[0]?.from).toBe(3);
    expect(spans.at(-1)?.to).toBe(40);
    for (const [at, span] of spans.entries()) if (at > 0) expect(span.from).toBe((spans[at - 1]?.to ?? 0) + 1);
    expect(spansOf(5, 4, nothing)).toEqual([]);
  });
});

it("a nonce without a transaction is shown as final if retention has deleted the nonce's range", () => {
  const nobody = { transactions: [], reservations: [], holes: [] };
  expect(spansOf(0, 5, { ...nobody, departedBelow: 4 })).toEqual([
    { from: 0, to: 3, kind: "final" },
    { from: 4, to: 5, kind: "foreign" },
  ]);
});
