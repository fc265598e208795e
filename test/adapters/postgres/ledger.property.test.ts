import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PostgresStore } from "../../../src/adapters/postgres/store.ts";
import { rowOf } from "../../../src/application/lane/tracked.ts";
import type { Fence } from "../../../src/domain/lane.ts";
import {
  apply,
  foldKept,
  type KeptLedger,
  keptOf,
  type Ledger,
  type LedgerOutcome,
  type LedgerTransaction,
  type LedgerWrite,
} from "../../../src/domain/ledger/index.ts";
import type { SignedAttempt } from "../../../src/domain/transaction/transaction.ts";
import { BatchRefused, type Committed, type LaneSnapshot, type LaneStore } from "../../../src/ports/lane-store.ts";
import type { RetentionStore } from "../../../src/ports/retention-store.ts";
import { rowsOf, wordsOf } from "../../domain/ledger/contents.ts";
import { departed } from "../../domain/ledger/departed.ts";
import { FoldedRows } from "../../domain/ledger/folded-rows.ts";
import { type Happening, story, storyWithDepartures, WriteMaker } from "../../domain/ledger/story.ts";
import { aLane, holdLane } from "../../support/lane-samples.ts";
import { letDaysPass } from "../../support/old-transactions.ts";
import { newLedger } from "../../support/whole-ledger.ts";
import { createPostgresSubject, type PostgresSubject } from "./postgres-subject.ts";

const HOUR_MS = 3_600_000;

/**
 * For the writes of a commit, the adapter loads only a part of a lane; the in-memory ledger always has the whole lane.
 * If their outcomes or states differ, the adapter did not load a row, or did not write a change.
 */
describe("a lane in PostgreSQL and an in-memory ledger with the same writes", () => {
  let subject: PostgresSubject;
  let store: PostgresStore;
  let stories = 0;

  beforeAll(async () => {
    subject = await createPostgresSubject();
    store = (await subject.connect()) as PostgresStore;
  });
  afterAll(async () => {
    await store.close();
    await subject.close();
  });

  // protects [Reads] src/adapters/postgres/commit/load.ts, src/adapters/postgres/commit/needs.ts, src/domain/ledger/part.ts, src/domain/ledger/kept.ts, src/application/writer/committer.ts
  it("return the same outcomes", async () => {
    await fc.assert(
      fc.asyncProperty(story, fc.integer({ min: 1, max: 6 }), async (happenings, size) => {
        const run = new StoryRun(subject, store, await holdLane(store, aLane(++stories)));
        for (const happening of happenings) if (!(await run.step(happening, size))) return;
        await run.commit();
        await run.compare();
      }),
      { numRuns: 25 },
    );
  }, 120_000);

  // protects [Retention] src/adapters/postgres/statements/old-row.ts
  it("differ only in removed rows and request ids after retention", async () => {
    await fc.assert(
      fc.asyncProperty(storyWithDepartures, fc.integer({ min: 1, max: 6 }), async (happenings, size) => {
        const run = new StoryRun(subject, store, await holdLane(store, aLane(++stories)));
        for (const happening of happenings) {
          if (happening.kind === "time") await run.letLeave();
          else if (!(await run.step(happening, size))) return;
        }
        await run.letLeave();
        await run.compare();
      }),
      { numRuns: 15 },
    );
  }, 120_000);
});

/**
 * Applies one random sequence of events to both the database and the in-memory ledger. Each sequence has a chain id of
 * its own, so that hashes and ids never collide.
 */
class StoryRun {
  private readonly subject: PostgresSubject;
  private readonly store: LaneStore & RetentionStore;
  private readonly fence: Fence;
  private readonly maker = new WriteMaker();
  private ledger: Ledger;
  /** The owner's in-memory copy of the lane: loaded once, then updated from the changes of each acknowledged commit. */
  private kept: KeptLedger | null = null;
  private readonly rows = new FoldedRows();
  private writes: LedgerWrite[] = [];
  private outcomes: LedgerOutcome[] = [];

  constructor(subject: PostgresSubject, store: LaneStore & RetentionStore, fence: Fence) {
    this.subject = subject;
    this.store = store;
    this.fence = fence;
    this.ledger = newLedger(fence.lane);
  }

  /** Applies one event. Returns false if the ledger rejects the event as a mistake, which ends the sequence. */
  async step(happening: Happening, size: number): Promise<boolean> {
    // The test cannot advance the database's clock, so a reservation is either expired at once or valid for hours. Skip
    // events that only advance time.
    if (happening.kind === "time") return true;
    // Commit before a realign (which sets the lane's next nonce from the chain). Otherwise, if a transaction gives up
    // its nonce in the same commit, the adapter still counts that nonce as used. Then only the next realign would lower
    // the lane's next nonce.
    if (happening.kind === "realign") await this.commit();
    const made = this.maker.make(this.ledger, happening);
    if (made === null) await this.outside();
    if (made === null) return true;
    const write = this.translated(made.kind === "reserve" ? { ...made, ttlMs: made.ttlMs * HOUR_MS } : made);
    this.writes.push(write);
    const before = { ...this.maker.loaded(this.ledger), mayHaveLost: false };
    const applied = unlessMistaken(() => apply(before, write, this.maker.now));
    if (applied === null) {
      await expect(this.send()).rejects.toBeInstanceOf(BatchRefused);
      return false;
    }
    this.ledger = applied.ledger;
    this.maker.took(this.ledger);
    this.outcomes.push(applied.outcome);
    // An `unwatch` write must be the last of its commit, so commit after it.
    if (this.writes.length >= size || write.kind === "unwatch") await this.commit();
    return true;
  }

  async commit(): Promise<void> {
    if (this.writes.length === 0) return;
    this.kept ??= await this.load();
    const { outcomes, changes } = await this.send();
    for (const each of changes) this.kept = foldKept(this.kept, each.changes);
    for (const each of changes) this.rows.fold(each.changes);
    const judged = outcomes as readonly LedgerOutcome[];
    expect(judged.map(wordsOf), this.writes.map(({ kind }) => kind).join()).toEqual(this.outcomes.map(wordsOf));
    this.writes = [];
    this.outcomes = [];
  }

  /** Ages every row by 100 days, then removes all rows that retention may remove. */
  async letLeave(): Promise<void> {
    await this.commit();
    await letDaysPass(this.subject.client, 100);
    const { chainId, signer } = this.fence.lane;
    const left = departed(this.ledger);
    const gone = [...this.ledger.transactions.known()].length - [...left.transactions.known()].length;
    while ((await this.store.shortenFeed(HOUR_MS, 500)).completions > 0);
    const transactions = await this.store.removeOld([this.fence], HOUR_MS, 1_000);
    expect(transactions, "of what is final, all leaves and nothing else").toBe(gone);
    this.ledger = left;
    const { rows } = await this.subject.client.query<{ tx_id: string }>(
      "SELECT tx_id FROM fencepost.transaction WHERE chain_id = $1 AND signer = $2 ORDER BY tx_id",
      [chainId, signer],
    );
    const kept = [...left.transactions.known()].map(([txId]) => txId);
    expect(rows.map(({ tx_id }) => tx_id)).toEqual(kept.sort());
  }

  async compare(): Promise<void> {
    const { ledger } = this;
    const lane = await this.store.loadLane(this.fence);
    if (this.kept !== null) expect(rowsOf(this.kept), "folded, and loaded").toEqual(rowsOf(await this.load()));
    for (const record of lane?.tracking ?? []) expect(this.rows.of(record.txId)).toEqual(rowOf(record));
    const all = [...ledger.live.known()].map(([, txId]) => ledger.transactions.get(txId) as LedgerTransaction);
    const tracking = all.filter(({ state }) => state === "TRACKING" || state === "STUCK");
    expect({
      ...{ cursor: lane?.cursor, suspendedBy: lane?.suspendedBy, reconciled: lane?.reconciled },
      allocated: lane?.allocated,
      tracking: lane?.tracking.map(({ attempts, ...tx }) => ({ ...standing(tx), attempts: attempts.length })),
      holes: lane?.holes.map(({ nonce, why }) => [nonce, why]),
      reserved: lane?.reservations.map(({ nonce, reservationId }) => [nonce, reservationId]),
      watched: lane?.watched.map(({ number }) => number),
    }).toEqual({
      ...{ cursor: ledger.cursor, suspendedBy: ledger.suspendedBy, reconciled: this.maker.reconciled },
      allocated: all.filter(({ state }) => state === "ALLOCATED").length,
      tracking: tracking.map((tx) => ({ ...standing(tx), attempts: tx.attemptCount })),
      holes: [...ledger.holes.known()].map(([nonce, { why }]) => [nonce, why]),
      reserved: [...ledger.reserved.known()],
      watched: [...ledger.watched.known()].map(([block]) => block),
    });
  }

  private async load(): Promise<KeptLedger> {
    return keptOf((await this.store.loadLane(this.fence)) as LaneSnapshot);
  }

  private send(): Promise<Committed> {
    return this.store.commit(this.writes.map((write) => mapped(write, (key, value) => this.stored(key, value))));
  }

  /** Events that do not come from the lane's owner: the database history changes, or an intent arrives. */
  private async outside(): Promise<void> {
    await this.commit();
    const { chainId, signer } = this.fence.lane;
    const epoch = this.maker.reconciled ? "reconciled_epoch" : 0;
    await this.subject.client.query(`UPDATE fencepost.lane SET reconciled_epoch = ${epoch} WHERE signer = $1`, [
      signer,
    ]);
    // The owner reloads the lane after every change of the database history.
    this.kept = await this.load();
    this.maker.intake = this.maker.intake.map((row) => this.translated(row));
    const row = this.maker.intake.at(-1);
    if (row === undefined) return;
    await this.subject.client.query(
      `INSERT INTO fencepost.intake (intake_id, tx_id, chain_id, signer, request_id, data, value, fingerprint, unanswered)
       OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, '', 1, decode($6, 'hex'), $7) ON CONFLICT DO NOTHING`,
      [this.intakeId(row.intakeId), row.txId, chainId, signer, row.requestId, row.fingerprint.slice(2), row.unanswered],
    );
  }

  private intakeId(intakeId: number): number {
    return this.fence.lane.chainId * 1_000_000 + intakeId;
  }

  private stored(key: string, value: unknown): unknown {
    // As with reservations, a `validUntil` is either already past or hours ahead.
    if (key === "validUntil" && value instanceof Date) {
      const aheadMs = value.getTime() - this.maker.now.getTime();
      return new Date(performance.timeOrigin + performance.now() + (aheadMs <= 0 ? -1_000 : aheadMs * HOUR_MS));
    }
    return key === "intakeId" && typeof value === "number" ? this.intakeId(value) : value;
  }

  /**
   * Converts generated values to those that the database accepts: ids become UUIDs, and fingerprints get 32 bytes. An
   * attempt without bytes becomes one that was signed by a node.
   */
  private translated<T>(whole: T): T {
    return mapped(whole, (key, value) => {
      if (key === "fence") return this.fence;
      if (key === "lane") return this.fence.lane;
      if (key === "fingerprint") return `0x${String(value).slice(2).padStart(64, "0")}`;
      if (key === "attempt") return withBytes(value as SignedAttempt);
      if (key === "txId" || key === "reservationId" || key === "of") return this.uuid(String(value));
      return value;
    });
  }

  private uuid(name: string): string {
    if (name.length === 36) return name;
    const [kind, number = 0] = name.split("-").map((part) => Number(part) || part.length);
    const digits = [kind, this.fence.lane.chainId, number].map((part) => String(part).padStart(4, "0"));
    return `00000000-0000-4000-8000-${digits.join("")}`;
  }
}

function withBytes(attempt: SignedAttempt): SignedAttempt {
  return attempt.rawTransaction === null ? { ...attempt, nodeSigned: true } : attempt;
}

function standing({ txId, nonce, state, subState, acceptedOrdinal }: Pick<LedgerTransaction, keyof typeof PLACES>) {
  return { txId, nonce, state, subState, acceptedOrdinal };
}
const PLACES = { txId: 0, nonce: 0, state: 0, subState: 0, acceptedOrdinal: 0 };

/** Copies plain data, replacing each value by the result of `replaced` for its key. */
function mapped<T>(value: T, replaced: (key: string, value: unknown) => unknown): T {
  if (Array.isArray(value)) return value.map((each) => mapped(each, replaced)) as T;
  if (value === null || typeof value !== "object" || value instanceof Date) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, mapped(replaced(key, each), replaced)]),
  ) as T;
}

function unlessMistaken<T>(act: () => T): T | null {
  try {
    return act();
  } catch (error) {
    if (error instanceof BatchRefused) return null;
    throw error;
  }
}
