import { beforeEach, describe, expect, it } from "vitest";
import { FigureBook } from "../../../src/application/lane/figure-book.ts";
import type { FigureRow } from "../../../src/domain/figures/figures.ts";
import type { SpendRow } from "../../../src/domain/figures/spend.ts";
import type { Fence, Lane } from "../../../src/domain/lane.ts";
import type { Change } from "../../../src/domain/ledger/index.ts";
import type { CountedRows } from "../../../src/ports/figure-store.ts";
import { createManualClock, type ManualClock } from "../../doubles/manual-clock.ts";

const lane = (n: number): Lane => ({ chainId: 1, signer: `0x${n.toString(16).padStart(40, "0")}` });
const A = lane(1);

let clock: ManualClock;
let fence: Fence | null;
let writes: { readonly fence: Fence; readonly rows: readonly FigureRow[]; readonly spend: readonly SpendRow[] }[];
let answer: () => Promise<boolean>;
let book: FigureBook;

beforeEach(() => {
  clock = createManualClock();
  fence = { lane: A, instanceId: "instance-1", token: 1 };
  writes = [];
  answer = async () => true;
  const laneOn = () => (fence === null ? null : { fence });
  const writeFigures = (owned: Fence, { figures: rows, spend }: CountedRows) => {
    writes.push({ fence: owned, rows, spend });
    return answer();
  };
  book = new FigureBook({ clock, store: { writeFigures }, laneOn, baseFeeOn: () => 7n });
});

const allocated = { kind: "allocated" } as Change;
const count = (of: Lane, changes: readonly Change[] = [allocated]) => book.record({ lane: of, changes });
const rowsOf = ({ signer }: Pick<Lane, "signer"> | { readonly signer: "" }, stepSeconds = 60): readonly FigureRow[] =>
  writes.flatMap(({ rows }) => rows).filter((row) => row.signer === signer && row.stepSeconds === stepSeconds);

describe("the book of figures", () => {
  it("writes nothing before its time, and the whole count of each bucket then", async () => {
    count(A);
    book.look();
    expect(writes).toEqual([]);
    await clock.advance(10_000);
    book.look();
    expect(rowsOf(A).map(({ created }) => created)).toEqual([1]);
    count(A);
    await clock.advance(10_000);
    book.look();
    expect(rowsOf(A).map(({ created }) => created)).toEqual([1, 2]);
    expect(rowsOf(A, 3_600).at(-1)?.created).toBe(2);
    expect(rowsOf({ signer: "" }).at(-1)?.created).toBe(2);
  });

  it("writes all lanes of a chain in one write, with the sums of the chain", async () => {
    for (let n = 1; n <= 50; n++) count(lane(n));
    await book.write();
    expect(writes).toHaveLength(1);
    expect(writes[0]?.rows).toHaveLength(50 * 2 + 2);
    expect(rowsOf({ signer: "" })[0]).toMatchObject({ created: 50, detail: { baseFee: ["350", 50, "7"] } });
  });

  it("splits a write that would be too long, and loses none of it", async () => {
    for (let n = 1; n <= 500; n++) count(lane(n));
    await book.write();
    expect(Math.max(...writes.map(({ rows }) => rows.length))).toBeLessThanOrEqual(150);
    const last = new Map(writes.flatMap(({ rows }) => rows.map((row) => [`${row.signer} ${row.stepSeconds}`, row])));
    expect(last.size).toBe(500 * 2 + 2);
  });

  it("writes less often if many lanes are active", async () => {
    for (let n = 1; n <= 3_000; n++) count(lane(n));
    await book.write();
    writes = [];
    count(A);
    await clock.advance(20_000);
    book.look();
    expect(writes).toEqual([]);
    await clock.advance(20_000);
    book.look();
    expect(writes).toHaveLength(1);
  });

  // protects [Figures] src/application/lane/figure-book.ts
  it("writes again what a write did not store, until it is stored", async () => {
    count(A);
    answer = async () => false;
    await book.write();
    answer = () => Promise.reject(new Error("the database is away"));
    await book.write();
    answer = async () => true;
    await book.write();
    await book.write();
    expect(rowsOf(A).map(({ created }) => created)).toEqual([1, 1, 1]);
  });

  it("waits while it owns no lane of the chain", async () => {
    const own = fence;
    fence = null;
    count(A);
    await book.write();
    expect(writes).toEqual([]);
    fence = own;
    await book.write();
    expect(rowsOf(A)).toHaveLength(1);
  });

  it("begins new buckets at a new minute and hour, and never reopens one", async () => {
    await clock.advance(59 * 60_000 + 59_000);
    count(A);
    await clock.advance(2_000);
    count(A);
    await book.write();
    const created = rowsOf(A).map(({ created }) => created);
    expect(created).toEqual([1, 1]);
    expect(rowsOf(A).map(({ at }) => at.toISOString().slice(11, 16))).toEqual(["00:59", "01:00"]);
    clock.stepWallClock(-3_600_000);
    count(A);
    await book.write();
    expect(rowsOf(A).at(-1)).toMatchObject({ created: 2, at: new Date("2026-01-01T01:00:00.000Z") });
  });

  // protects [Figures] src/application/lane/figure-book.ts
  it("does not count earlier rows twice under another instance id", async () => {
    count(A);
    await book.write();
    fence = { lane: A, instanceId: "instance-2", token: 2 };
    count(A);
    count(A);
    await book.write();
    count(A);
    await book.write();
    const second = writes.filter((each) => each.fence.instanceId === "instance-2").flatMap(({ rows }) => rows);
    expect(second.filter(({ signer, stepSeconds }) => signer === A.signer && stepSeconds === 60).at(-1)?.created).toBe(
      1,
    );
  });

  it("counts outcomes with what they paid, and alerts by code", async () => {
    const at = clock.now();
    const item = { txId: "t1", paid: { ordinal: 1, gasCost: 42n, succeeded: true } };
    const measured = { createdAt: new Date(at.getTime() - 15_000), offered: 30n };
    const moved = { kind: "moved", item: { ...item, measured }, at } as unknown as Change;
    const completed = (txId: string, state: string, owner: string | null) =>
      ({ kind: "completed", completion: { txId, state }, owner, at }) as unknown as Change;
    count(A, [
      moved,
      completed("t1", "CONFIRMED", "shop"),
      completed("t2", "FAILED_FINAL", null),
      completed("t3", "STUCK", null),
      completed("t4", "REORGED", null),
    ]);
    const passed: unknown[] = [];
    const telemetry = book.watching({ emit: (event) => void passed.push(event) });
    const alert = { type: "alert", severity: "WARNING", message: "" } as const;
    telemetry.emit({ ...alert, code: "FEE_CEILING_REACHED", lane: A });
    telemetry.emit({ ...alert, code: "CHAIN_STALLED", chainId: 1 });
    telemetry.emit({ type: "chain.reachable", chainId: 1 });
    expect(passed).toHaveLength(3);
    await book.write();
    expect(rowsOf(A)[0]).toMatchObject({
      ...{ completed: 2, failed: 1, fees: 42n },
      detail: {
        ...{ stuck: 1, reorged: 1, offered: ["30", 1, "30"], troubles: { FEE_CEILING_REACHED: 1 } },
        keys: [
          ["shop", 1, "42"],
          [null, 1, "0"],
        ],
      },
    });
    expect(rowsOf({ signer: "" })[0]?.detail.troubles).toEqual({ FEE_CEILING_REACHED: 1, CHAIN_STALLED: 1 });
  });

  // protects [Figures] src/application/lane/figure-book.ts, src/domain/figures/figures.ts
  it("takes back the fees of an outcome that a reorg withdrew, also in a later bucket", async () => {
    const paid = (gasCost: bigint) => ({ kind: "moved", item: { txId: "t", paid: { ordinal: 1, gasCost } } });
    const ended = (state: string) => ({ kind: "completed", completion: { txId: "t", state }, owner: "shop" });
    const happens = (gasCost: bigint, state: string) =>
      count(A, [{ ...paid(gasCost), at: clock.now() }, ended(state)] as unknown as Change[]);
    happens(40n, "CONFIRMED");
    await book.write();
    await clock.advance(3_600_000);
    happens(40n, "REORGED");
    await book.write();
    await clock.advance(3_600_000);
    happens(55n, "CONFIRMED");
    await book.write();
    const hours = rowsOf(A, 3_600);
    expect(hours.map(({ fees }) => fees)).toEqual([40n, -40n, 55n]);
    expect(hours.map(({ detail }) => detail.keys)).toEqual([
      [["shop", 1, "40"]],
      [["shop", 0, "-40"]],
      [["shop", 1, "55"]],
    ]);
    const days = writes.flatMap(({ spend }) => spend);
    expect(days.at(-1)?.ranks).toEqual([41, 1, 57]);
  });

  // protects [Figures] src/application/lane/figure-book.ts
  it("writes one row more for each lane with an outcome: its spend by the hours of a day", async () => {
    const pay = (of: Lane, gasCost: bigint) => {
      const moved = { kind: "moved", item: { txId: "t", paid: { ordinal: 1, gasCost } }, at: clock.now() };
      const completed = { kind: "completed", completion: { txId: "t", state: "CONFIRMED" }, owner: null };
      count(of, [moved, completed] as unknown as Change[]);
    };
    const ranksOf = ({ signer }: Lane) =>
      writes
        .flatMap(({ spend }) => spend)
        .filter((each) => each.signer === signer)
        .map(({ at, ranks }) => [at, ranks]);
    const day = clock.now();
    pay(A, 40n);
    count(lane(2));
    await book.write();
    expect(writes.flatMap(({ rows, spend }) => [...rows, ...spend])).toHaveLength(2 * 2 + 2 + 1);
    await clock.advance(2 * 3_600_000);
    pay(A, 5n);
    pay(A, 2n);
    await book.write();
    // A lane whose transactions are not final yet has paid nothing.
    expect(ranksOf(lane(2))).toEqual([]);
    await clock.advance(22 * 3_600_000);
    pay(A, 1n);
    await book.write();
    expect(ranksOf(A)).toEqual([
      [day, [41]],
      [day, [41, 41, 50]],
      [new Date(day.getTime() + 86_400_000), [2]],
    ]);
  });
});
