import { createHash, randomUUID } from "node:crypto";
import { createUuidSequence } from "../../src/adapters/system/entropy.ts";
import type { Address, Fence, Hash, Lane } from "../../src/domain/lane.ts";
import { fingerprint } from "../../src/domain/transaction/fingerprint.ts";
import type { Payload, PreparedIntent, Receipt, SignedAttempt } from "../../src/domain/transaction/transaction.ts";
import { type State, type Status, type TransitionEvent, transition } from "../../src/domain/transaction/transitions.ts";
import type {
  AllocateResult,
  LaneStore,
  MoveResult,
  TransitionItem,
  WriteOutcome,
} from "../../src/ports/lane-store.ts";
import type { InstanceRegistration, LeaseStore } from "../../src/ports/lease-store.ts";

/**
 * Sample values for store tests; a test overrides only the fields that it is about. Generated names are unique within a
 * process.
 */

/** Ids of version 7, as production makes them. */
export const nextUuid = createUuidSequence(
  () => Date.now(),
  (bytes) => crypto.getRandomValues(bytes),
);
let counter = 0;

/** Fields of a reservation without an API key and without a limit. */
export const BY_ANYBODY = { owner: null, most: 1_000 } as const;

export function uniqueAddress(): Address {
  return `0x${createHash("sha1").update(randomUUID()).digest("hex")}`;
}

export function uniqueHash(): Hash {
  return `0x${createHash("sha256").update(randomUUID()).digest("hex")}`;
}

export function aLane(chainId = 1): Lane {
  return { chainId, signer: uniqueAddress() };
}

export function anInstance(overrides: Partial<InstanceRegistration> = {}): InstanceRegistration {
  const instanceId = randomUUID();
  return {
    instanceId,
    nodeId: `node-${++counter}`,
    url: `http://node-${counter}:3000`,
    version: "0.0.0",
    mode: "worker-queue",
    leaseDurationMs: 60_000,
    signers: [],
    chains: [],
    standsBack: false,
    keysAway: [],
    publicKey: `key of ${instanceId}`,
    keyProof: null,
    ...overrides,
  };
}

/** Registers an instance and acquires a lane with it. */
export async function holdLane(store: LeaseStore, lane: Lane = aLane()): Promise<Fence> {
  const instance = anInstance();
  await store.registerInstance(instance);
  const acquisition = await store.acquireLane(lane, instance.instanceId);
  if (acquisition.result === "notLeader") throw new Error("the lane has an owner");
  return acquisition.fence;
}

export function aPayload(overrides: Partial<Payload> = {}): Payload {
  return { to: `0x${"b".repeat(40)}`, data: "0x", value: 1n, ...overrides };
}

export interface IntentWishes {
  readonly requestId?: string | null;
  readonly owner?: string | null;
  readonly payload?: Partial<Payload>;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  readonly gas?: bigint;
  readonly gasCost?: bigint;
  readonly validUntil?: Date;
}

export function anIntent(lane: Lane, wishes: IntentWishes = {}): PreparedIntent {
  const payload = aPayload(wishes.payload);
  return {
    txId: nextUuid(),
    lane,
    requestId: wishes.requestId ?? null,
    owner: wishes.owner ?? null,
    payload,
    fingerprint: fingerprint(payload),
    metadata: wishes.metadata ?? null,
    gas: wishes.gas ?? 21_000n,
    gasCost: wishes.gasCost ?? 0n,
    ...(wishes.validUntil === undefined ? {} : { validUntil: wishes.validUntil }),
  };
}

type NamedAttempt = SignedAttempt & { readonly txHash: Hash };

export function anAttempt(ordinal = 1, overrides: Partial<NamedAttempt> = {}): NamedAttempt {
  return {
    ordinal,
    kind: ordinal === 1 ? "initial" : "reprice",
    txHash: uniqueHash(),
    gas: 21_000n,
    fees: { type: "eip1559", maxFeePerGas: 30_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n },
    rawTransaction: `0x02${randomUUID().replaceAll("-", "")}`,
    ...overrides,
  };
}

export function aReceipt(txHash: Hash, overrides: Partial<Receipt> = {}): Receipt {
  return {
    txHash,
    blockNumber: 100,
    blockHash: `0x${"c".repeat(64)}`,
    transactionIndex: 0,
    status: "success",
    gasUsed: 21_000n,
    effectiveGasPrice: 20_000_000_000n,
    contractAddress: null,
    ...overrides,
  };
}

/** One state change of the transition table, starting from the state that the transaction's row is assumed to have. */
export function step(
  txId: string,
  from: Status,
  event: TransitionEvent,
  extras: Partial<TransitionItem> = {},
): TransitionItem {
  const to = transition(from, event);
  return { txId, event, from: from.state, to: to.state, subState: to.subState, ...extras };
}

export const AT = {
  allocated: { state: "ALLOCATED", subState: null },
  pending: { state: "TRACKING", subState: "PENDING" },
  broadcast: { state: "TRACKING", subState: "BROADCAST" },
  mined: { state: "TRACKING", subState: "MINED" },
  confirmed: { state: "CONFIRMED", subState: null },
} as const satisfies Record<string, Status>;

export async function commitOne(
  store: Pick<LaneStore, "commit">,
  write: Parameters<LaneStore["commit"]>[0][number],
): Promise<WriteOutcome> {
  const [outcome] = await outcomesOf(store, [write]);
  if (outcome === undefined) throw new Error("a commit without an outcome");
  return outcome;
}

/** Commits these writes together and returns their results. */
export async function outcomesOf(
  store: Pick<LaneStore, "commit">,
  writes: Parameters<LaneStore["commit"]>[0],
): Promise<readonly WriteOutcome[]> {
  return (await store.commit(writes)).outcomes;
}

export async function allocate(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  intents: readonly PreparedIntent[],
  floor: number | null = 0,
): Promise<readonly AllocateResult[]> {
  const items = intents.map((intent) => ({ intent }));
  const outcome = await commitOne(store, { kind: "allocate", fence, floor, items });
  if (outcome.status !== "allocated") throw new Error(`the allocation ended as ${outcome.status}`);
  return outcome.items;
}

export function nonces(results: readonly AllocateResult[]): readonly (number | null)[] {
  return results.map((result) => (result.result === "created" ? result.nonce : null));
}

export async function apply(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  items: readonly TransitionItem[],
): Promise<readonly MoveResult[]> {
  const outcome = await commitOne(store, { kind: "transition", fence, items });
  if (outcome.status !== "applied") throw new Error(`the transition ended as ${outcome.status}`);
  return outcome.items;
}

export interface Mined {
  readonly intent: PreparedIntent;
  readonly attempt: NamedAttempt;
  readonly receipt: Receipt;
}

/** Creates, signs, sends and mines a transaction, each step in a separate commit. */
export async function mine(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  receipt: Partial<Receipt> = {},
  intent: PreparedIntent = anIntent(fence.lane),
): Promise<Mined> {
  const attempt = anAttempt();
  const found = aReceipt(attempt.txHash, receipt);
  await allocate(store, fence, [intent]);
  await apply(store, fence, [step(intent.txId, AT.allocated, "sign", { attempt, claim: { ordinal: 1 } })]);
  await apply(store, fence, [step(intent.txId, AT.pending, "broadcast", { accepted: { ordinal: 1 } })]);
  await apply(store, fence, [step(intent.txId, AT.broadcast, "mine", { receipt: found })]);
  return { intent, attempt, receipt: found };
}

/** Creates a transaction and confirms it, with its completion. */
export async function confirm(
  store: Pick<LaneStore, "commit">,
  fence: Fence,
  receipt: Partial<Receipt> = {},
  intent: PreparedIntent = anIntent(fence.lane),
): Promise<Mined> {
  const mined = await mine(store, fence, receipt, intent);
  const completion = { state: "CONFIRMED", subState: null, settled: true, txHash: mined.attempt.txHash } as const;
  await apply(store, fence, [step(mined.intent.txId, AT.mined, "confirm", { completion })]);
  return mined;
}

export async function stateOf(
  store: { transaction(txId: string): Promise<{ state: State } | null> },
  txId: string,
): Promise<State | null> {
  return (await store.transaction(txId))?.state ?? null;
}
