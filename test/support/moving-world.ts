import type { CompletionsQuery, CreateRequest, FencepostApi, TransactionView } from "../../src/application/api.ts";
import { invalid } from "../../src/domain/errors.ts";
import type { Address } from "../../src/domain/lane.ts";
import type { CompletionRecord } from "../../src/ports/query-store.ts";
import {
  sampleCompletion,
  sampleHash,
  sampleSigner,
  sampleTransaction,
  sampleTxId,
  scriptedApi,
} from "./scripted-api.ts";

/** A node for the dashboard to look at: transactions walk one stage further each time the test says so. */
export interface MovingWorld {
  readonly api: FencepostApi;
  add(overrides: Partial<TransactionView>): TransactionView;
  /** One stage on, for everything that is still moving. */
  step(): void;
}

const LANES: readonly Address[] = [
  "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266",
  "0x70997970c51812dc3a010c7d01b50e0d17dc79c8",
  "0x3c44cdddb6a900fa2b585dd299e03d12fa4293bc",
];

type Step = Pick<TransactionView, "state" | "subState">;
const ROAD: readonly Step[] = [
  { state: "ALLOCATED", subState: null },
  { state: "TRACKING", subState: "PENDING" },
  { state: "TRACKING", subState: "BROADCAST" },
  { state: "TRACKING", subState: "MINED" },
  { state: "CONFIRMED", subState: null },
];

const HAS_ENDED: readonly string[] = ["CONFIRMED", "FAILED_FINAL", "STUCK"];

export function createMovingWorld(now: () => Date = () => new Date()): MovingWorld {
  const transactions: TransactionView[] = [];
  const feed = createFeed(now);

  const add = (overrides: Partial<TransactionView>) => {
    const n = transactions.length + 1;
    const signer = overrides.lane?.signer ?? (LANES[0] as Address);
    const nonce = transactions.filter(({ lane }) => lane.signer === signer).length;
    const fresh = { txId: sampleTxId(n), requestId: `order-${n}`, nonce, createdAt: now() };
    const view = at(sampleTransaction({ ...fresh, ...overrides }), n);
    transactions.push(view);
    feed.completeIfFinal(view);
    return view;
  };

  const step = () => {
    for (const [index, view] of transactions.entries()) {
      const next = ROAD[placeOf(view) + 1];
      if (next === undefined || HAS_ENDED.includes(view.state)) continue;
      const moved = at({ ...view, ...next, updatedAt: now() }, index + 1);
      transactions[index] = moved;
      feed.completeIfFinal(moved);
    }
  };

  const api = scriptedApi({
    createBatch: async (requests) => requests.map((request) => create(request, add)),
    transaction: async (txId) => {
      const view = transactions.find((each) => each.txId === txId) ?? sampleTransaction();
      return { ...view, history: historyOf(view) };
    },
    transactions: async ({ limit = 100 }) => ({
      items: transactions.slice(-limit).reverse(),
      next: transactions.length > limit ? "more" : null,
    }),
    completions: feed.read,
    signers: async () => ({ items: LANES.map((signer) => laneOf(signer, transactions)), next: null }),
    readiness: async () => ({
      ready: true,
      database: true,
      chains: [{ chainId: 31337, reachable: true, head: 1200, signersAway: 0 }],
      draining: false,
    }),
  });
  return { api, add, step };
}

function create(request: CreateRequest, add: MovingWorld["add"]) {
  const { to, value } = request.payload as { to: Address; value: string };
  if (/^0x0+$/.test(to)) return invalid("payload.to", "is the zero address");
  const view = add({
    ...(ROAD[0] as Step),
    lane: { chainId: 31337, signer: String(request.signer).toLowerCase() as Address },
    requestId: String(request.requestId),
    payload: { to, data: "0x", value: BigInt(value) },
  });
  const { txId, lane, requestId, nonce, state } = view;
  return { outcome: "created" as const, txId, lane, requestId, nonce, state };
}

function createFeed(now: () => Date) {
  const completions: CompletionRecord[] = [];
  const waiting = new Set<() => void>();
  return {
    completeIfFinal({ txId, lane, requestId, nonce, state, subState, txHash }: TransactionView) {
      if (state !== "CONFIRMED" && state !== "FAILED_FINAL") return;
      const seq = completions.length + 1;
      completions.push(sampleCompletion({ seq, txId, lane, requestId, nonce, state, subState, txHash, at: now() }));
      for (const wake of waiting) wake();
    },
    async read({ after, limit = 100, signal }: CompletionsQuery) {
      if (completions.length <= after && signal !== undefined) await wakeOrAbort(waiting, signal);
      const items = completions.slice(after, after + limit);
      return { epoch: 1, items, next: items.at(-1)?.seq ?? after };
    },
  };
}

function placeOf(view: Step): number {
  return ROAD.findIndex((place) => place.state === view.state && place.subState === view.subState);
}

function wakeOrAbort(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const wake = () => {
      waiting.delete(wake);
      resolve();
    };
    waiting.add(wake);
    signal.addEventListener("abort", () => {
      waiting.delete(wake);
      reject(signal.reason);
    });
  });
}

/** Attempts and receipt as they must be at its place on the road. */
function at(view: TransactionView, n: number): TransactionView {
  const signed = view.nonce !== null && view.state !== "ALLOCATED" && view.state !== "CREATED";
  const mined = view.subState === "MINED" || view.state === "CONFIRMED" || view.subState === "REVERTED";
  const [first] = sampleTransaction().attempts;
  const attempts =
    view.attempts.length > 1 || first === undefined
      ? view.attempts
      : [{ ...first, txHash: sampleHash(0xabc0000000 + n * 7919) }];
  return {
    ...view,
    attempts: signed ? attempts : [],
    txHash: signed ? (attempts.at(-1)?.txHash ?? null) : null,
    receipt: mined
      ? {
          txHash: attempts.at(-1)?.txHash ?? sampleHash(n),
          blockNumber: 1200 + n,
          blockHash: sampleHash(0xb10c + n),
          transactionIndex: 0,
          status: view.subState === "REVERTED" ? "reverted" : "success",
          gasUsed: 21_000n,
          effectiveGasPrice: 2_000_000_000n,
          contractAddress: null,
        }
      : null,
  };
}

function historyOf(view: TransactionView): NonNullable<TransactionView["history"]> {
  const events = ["allocate", "sign", "broadcast", "mine", "confirm"] as const;
  return ROAD.slice(0, placeOf(view) + 1).map((place, index) => ({
    ...place,
    ordinal: index + 1,
    event: events[index] ?? "confirm",
    fromState: ROAD[index - 1]?.state ?? null,
    nodeId: "node-a",
    token: 3,
    reason: null,
    count: 1,
    firstAt: view.createdAt,
    lastAt: view.createdAt,
  }));
}

function laneOf(signer: Address, transactions: readonly TransactionView[]) {
  const own = transactions.filter(({ lane }) => lane.signer === signer);
  const confirmed = own.filter(({ state }) => state === "CONFIRMED").length;
  const failed = own.filter(({ state }) => state === "FAILED_FINAL").length;
  const stuck = own.filter(({ state }) => state === "STUCK").length;
  return sampleSigner({
    lane: { chainId: 31337, signer },
    address: signer,
    cursor: own.length === 0 ? null : own.length,
    confirmed,
    failed,
    stuck,
    pending: own.length - confirmed - failed - stuck,
    balance: own.length === 0 ? 10_000n * 10n ** 18n : 9_998_765_400_000_000_000_000n,
    ...(own.length === 0 ? { owner: null, headOfLine: null, oldestPendingAt: null } : {}),
  });
}
