import { ROOMY_POOL } from "../../../doubles/simulated-chain/pool.ts";
import { checkInvariants } from "../../invariants.ts";
import type { WorldOptions } from "../../world.ts";
import { Calm } from "./calm.ts";
import { deadlines } from "./deadlines.ts";
import { expiredReservation } from "./expired-reservation.ts";
import { failedBatch, falseCounts, refutedCounts } from "./false-counts.ts";
import { flows, SMALL_BATCH } from "./flows.ts";
import { futureNonces } from "./future-nonces.ts";
import { lostLease, lostSession } from "./lost-lease.ts";
import { changedMinds, dearerRefused, refusals } from "./refusals.ts";
import { signerAway } from "./signer-away.ts";
import { silentReceipts } from "./silent-receipts.ts";
import { oldHead, shakenChain, standstill } from "./standstill.ts";
import { growingBacklog, repeatedSends } from "./surges.ts";

/** Of as many seeds, one has a trouble that comes alone and lasts. They come in turn, so that few seeds have all. */
const ONE_IN = 4;

interface Lasting {
  /** The world in which it happens. */
  readonly options?: (turn: number) => WorldOptions;
  readonly play: (calm: Calm) => Promise<void>;
}

const SLOW_RESENDS = { settings: { resubmitIntervalMs: 600_000, repricing: null, pollIntervalMs: 2_000 } };

const LEASE = { durationMs: 2_000, renewIntervalMs: 500, clockSkewMs: 200 };

const TROUBLES: Readonly<Record<string, Lasting>> = {
  refusals: { options: () => SLOW_RESENDS, play: refusals },
  "changed minds": { options: () => SLOW_RESENDS, play: changedMinds },
  "a dearer offer refused": { options: () => ({ settings: { resubmitIntervalMs: 2_000 } }), play: dearerRefused },
  "no future nonces": {
    options: () => ({
      settings: { resubmitIntervalMs: 600_000, repricing: null },
      chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } },
    }),
    play: futureNonces,
  },
  standstill: { options: () => ({ settings: { resubmitIntervalMs: 600_000, repricing: null } }), play: standstill },
  "a shaken chain": { options: () => SLOW_RESENDS, play: shakenChain },
  "an old head": {
    options: (turn) => ({
      settings: { resubmitIntervalMs: 2_000, repricing: null, stuckAfterMs: 30_000 * (1 + (turn % 2)) },
      node: { lease: LEASE },
    }),
    play: oldHead,
  },
  "repeated sends": {
    options: () => ({ settings: { resubmitIntervalMs: 1_000, repricing: null, pollIntervalMs: 1_000 } }),
    play: repeatedSends,
  },
  "a signer away": { options: () => SLOW_RESENDS, play: signerAway },
  "few and many": {
    options: (turn) => ({
      settings: { ...SLOW_RESENDS.settings, inFlightWindow: 1_000 },
      node: { writer: { batchSize: turn % 2 === 0 ? SMALL_BATCH : 200, batchTimeoutMs: 2, shards: 256 } },
    }),
    play: flows,
  },
  "a lost lease": {
    options: () => ({ settings: { resubmitIntervalMs: 500, repricing: null }, node: { lease: LEASE } }),
    play: lostLease,
  },
  "a lost session": {
    options: () => ({ sessionLocks: true, settings: { resubmitIntervalMs: 500, repricing: null } }),
    play: lostSession,
  },
  deadlines: { options: () => SLOW_RESENDS, play: deadlines },
  "an expired reservation": {
    options: () => ({ settings: { resubmitIntervalMs: 600_000, repricing: null } }),
    play: expiredReservation,
  },
  "silent receipts": {
    options: () => ({ settings: { resubmitIntervalMs: 2_000, repricing: null }, node: { lease: LEASE } }),
    play: silentReceipts,
  },
  "false counts": {
    options: () => ({ settings: { nonceStateTimeoutMs: 0, reconciliationIntervalMs: 15_000 } }),
    play: falseCounts,
  },
  "refuted counts": {
    options: () => ({ settings: { nonceStateTimeoutMs: 0, reconciliationIntervalMs: 3_600_000 } }),
    play: refutedCounts,
  },
  "a failed batch": {
    options: () => ({ settings: { nonceStateTimeoutMs: 3_600_000, reconciliationIntervalMs: 3_600_000 } }),
    play: failedBatch,
  },
  "a growing backlog": {
    options: () => ({ settings: { ...SLOW_RESENDS.settings, staleReceiptTimeoutMs: 3_600_000 } }),
    play: growingBacklog,
  },
};

export const LASTING = Object.keys(TROUBLES).map((name) => `alone: ${name}`);

export interface Lasted {
  readonly name: string;
  readonly violations: readonly string[];
}

/** Plays a trouble that comes alone; null if this seed has none. `only`: the trouble to be played. */
export async function playLasting(seed: number, only?: string): Promise<Lasted | null> {
  const names = Object.keys(TROUBLES);
  const count = Math.floor(seed / ONE_IN);
  if (only !== undefined) return lasted(seed, only, seed);
  return seed % ONE_IN === 0
    ? lasted(seed, names[count % names.length] as string, Math.floor(count / names.length))
    : null;
}

/** `turn`: how often it was played with lower seeds. */
async function lasted(seed: number, name: string, turn: number): Promise<Lasted> {
  const { options, play } = TROUBLES[name] as Lasting;
  const calm = new Calm(seed, turn, options?.(turn));
  const violations = [...(await failureIn(calm, play)), ...calm.violations, ...calm.wires.violations];
  await calm.world.close();
  return { name: `alone: ${name}`, violations: violations.map((each) => `${name}: ${each}`) };
}

async function failureIn(calm: Calm, play: Lasting["play"]): Promise<readonly string[]> {
  try {
    await play(calm);
    checkInvariants(calm.world);
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}
