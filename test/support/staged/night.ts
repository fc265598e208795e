import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Address } from "../../../src/client/index.ts";
import type { Caller } from "../../../src/contract/calls/cluster.ts";
import type { Attention } from "../../../src/contract/schemas/attention.ts";
import type { ClusterHistory } from "../../../src/contract/schemas/cluster-history.ts";
import type { Completion } from "../../../src/contract/schemas/completions.ts";
import type { Costs, History } from "../../../src/contract/schemas/figures.ts";
import type { NonceRuler } from "../../../src/contract/schemas/nonce-ruler.ts";
import type { Notices } from "../../../src/contract/schemas/notice.ts";
import type { Overview } from "../../../src/contract/schemas/overview.ts";
import type { SignerLane } from "../../../src/contract/schemas/signers.ts";
import type { Explanation, Transaction } from "../../../src/contract/schemas/transaction-schema.ts";
import { SCOPES } from "../../../src/domain/keys/principal.ts";
import { stagedSignatures, stagedWebhooks } from "./outcomes-and-messages.ts";
import type { Asked } from "./staged-node.ts";

/**
 * Responses of a node during a night with troubles of every kind, for pictures and for tests of the page alone. A test
 * validates each response against the contract.
 */

const SIGNERS = [
  "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
  "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
  "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
  "0x90F79bf6EB2c4f870365E785982E1f101E93b906",
  "0x15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
  "0x9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
] as const;

export const STUCK_TX = "019a4b7e-8a90-7cc1-b1d2-00000000002a";
export const AWAITING_TX = "019a4b7e-8a90-7cc1-b1d2-0000000000aa";
export const FOREIGN_NOTICE = "5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a11";
const CHAIN = 8453;

export interface NightOptions {
  readonly now: () => Date;
  /** If set, there are no troubles. */
  readonly isCalm?: boolean;
  /** Text chosen by callers and contracts, to be shown on the page. */
  readonly words?: string;
  /** Number of lanes. */
  readonly lanes?: number;
  /** Scopes of the API key; if absent, all. */
  readonly scopes?: Caller["scopes"];
  /** Time in ms for which a long poll stays unanswered; if absent, as long as the request asks for. */
  readonly heldMs?: number;
}

const hash = (n: number): `0x${string}` =>
  `0x${(0x6f4c9d2a1b8en * BigInt(n + 7919)).toString(16).padStart(16, "0").repeat(4).slice(0, 64)}`;
const idOf = (n: number) => `019a4b7e-8a90-7cc1-b1d2-${n.toString(16).padStart(12, "0")}`;

export function night({ now, isCalm = false, words, lanes = SIGNERS.length, heldMs, scopes }: NightOptions) {
  const at = (secondsAgo: number) => new Date(now().getTime() - secondsAgo * 1_000).toISOString();
  const scene = { at, isCalm, words, lanes };
  const answer = ({ path, query, method }: Asked): unknown => {
    const [, kind, id, what] = path.split("/");
    if (method !== "GET") return {};
    switch (kind) {
      case "attention":
        return attention(scene);
      case "overview":
        return overview(scene);
      case "search":
        return { items: found(query.get("q") ?? "") };
      case "tx":
        if (id === "completions") return completions(scene, Number(query.get("after") ?? 0));
        if (id === undefined) return transactionPage(scene, query);
        if (what === "explain") return explanation(scene);
        return {
          ...transaction(scene, Number.parseInt(id.slice(-6), 16)),
          ...(query.get("include") === "logs" && { onChain: onChain(scene) }),
        };
      case "signers":
        if (id === undefined) return signersPage(scene, query);
        if (what === "nonces") return ruler(scene, query);
        return {
          items: [lane(scene, Math.max(0, (SIGNERS as readonly string[]).indexOf(id)))],
        };
      case "nodes":
        return { items: nodes(scene) };
      case "notices":
        return { items: isCalm ? [] : notices(scene, query.get("signer")) };
      case "cluster":
        return history(scene);
      case "policy":
        return id === "usage" ? usage(scene) : policies(scene);
      case "keys":
        return keys(scene);
      case "webhooks":
        return listOrOne(stagedWebhooks(at), "subscriberId", id);
      case "signatures":
        return listOrOne(
          stagedSignatures(at, words).filter(({ state }) => (query.get("state") ?? state) === state),
          "signatureId",
          id,
        );
      case "me":
        return caller(scopes);
      case "signer-names":
        return { items: [{ signer: SIGNERS[0], name: words ?? "payouts-1" }] };
      case "history":
        return strip(scene, query);
      case "costs":
        return costs(query);
      default:
        return null;
    }
  };
  // Nothing changes in this staged data, so a long poll stays unanswered until its wait ends.
  return (asked: Asked): unknown => {
    const ms = Number(asked.query.get("wait") ?? 0) * 1_000;
    return ms === 0 ? answer(asked) : held(heldMs ?? ms, () => answer(asked));
  };
}

/** The list, or the item with this id; null if there is none. */
function listOrOne<Key extends string>(items: readonly Readonly<Record<Key, string>>[], key: Key, id?: string) {
  if (id !== undefined) return items.find((each) => each[key] === id) ?? null;
  return { items, next: null };
}

function held(ms: number, answer: () => unknown): Promise<unknown> {
  return new Promise((resolve) => systemClock.after(ms, () => resolve(answer())));
}

interface Staged {
  readonly at: (secondsAgo: number) => string;
  readonly isCalm: boolean;
  readonly words: string | undefined;
  readonly lanes: number;
}

const nowhere = { chainId: null, signer: null, txId: null, nonce: null, nodeId: null, endpoint: null, waiting: 0 };

function attention({ at, isCalm, words }: Staged): Attention {
  const actionRequest = (action: string, label: string, path: string, body: object = {}) => ({
    action,
    label,
    method: "POST" as const,
    path: `/api/v1${path}`,
    body,
  });
  const [payouts, treasury, mint, shared] = SIGNERS;
  const items: Attention["items"] = [
    {
      ...nowhere,
      id: `notice:${FOREIGN_NOTICE}`,
      severity: "CRITICAL",
      code: "EXTERNAL_KEY_USE",
      sentence: `Another program used the key of this signer: nonce 31 went to ${hash(31)}, which was not sent from here. If nobody here did it, the key is stolen: stop the signer and move its funds.`,
      since: at(5_400),
      chainId: CHAIN,
      signer: shared,
      nonce: 31,
      actions: [
        actionRequest("acknowledge", "Acknowledge", `/notices/${FOREIGN_NOTICE}/acknowledge`, { times: 1 }),
        actionRequest("suspendLane", "Suspend the lane", `/signers/${shared}/suspend`, { chainId: CHAIN }),
        actionRequest("killSigner", "Stop this signer", `/signers/${shared}/kill`),
      ],
    },
    {
      ...nowhere,
      id: "stuck",
      severity: "CRITICAL",
      code: "STUCK",
      sentence:
        words ?? "Nonce 42 is stuck: its fee cap of 1.2 gwei has been below the base fee of 4.8 gwei for 37 blocks.",
      since: at(260),
      chainId: CHAIN,
      signer: payouts,
      txId: STUCK_TX,
      nonce: 42,
      waiting: 17,
      actions: [
        actionRequest("reprice", "Raise the fee", `/tx/${STUCK_TX}/reprice`),
        actionRequest("cancel", "Cancel", `/tx/${STUCK_TX}/cancel`),
      ],
    },
    {
      ...nowhere,
      id: "hole",
      severity: "ERROR",
      code: "HOLE_BELOW",
      sentence: "Nothing holds nonce 108: it was given back, and everything above it waits.",
      since: at(95),
      chainId: CHAIN,
      signer: mint,
      txId: idOf(0x6d),
      nonce: 108,
      waiting: 6,
      actions: [actionRequest("resolve", "Fill the hole", `/tx/${idOf(0x6d)}/resolve`, { action: "PLACEHOLDER" })],
    },
    {
      ...nowhere,
      id: "funds",
      severity: "ERROR",
      code: "INSUFFICIENT_FUNDS",
      sentence:
        "The signer has 0.0021 ether, and the next transaction costs up to 0.05: send it funds, and it goes on by itself.",
      since: at(610),
      chainId: CHAIN,
      signer: treasury,
      nonce: 9,
      waiting: 3,
      actions: [
        {
          action: "look",
          label: "Show the address",
          method: "GET",
          path: `/api/v1/signers/${treasury}?chainId=${CHAIN}`,
          body: null,
        },
      ],
    },
    {
      ...nowhere,
      id: `tx:${AWAITING_TX}`,
      severity: "WARNING",
      code: "AWAITING_APPROVAL",
      sentence: "It waits until an API key with the scope approve has approved it.",
      since: at(120),
      chainId: CHAIN,
      signer: treasury,
      txId: AWAITING_TX,
      actions: [
        actionRequest("approve", "Approve", `/tx/${AWAITING_TX}/approve`),
        actionRequest("reject", "Reject", `/tx/${AWAITING_TX}/reject`),
      ],
    },
    {
      ...nowhere,
      id: "endpoint",
      severity: "WARNING",
      code: "RPC_ENDPOINT_DOWN",
      sentence: "https://rpc-2.example.net has not answered for 4 minutes; the other endpoint serves.",
      since: at(240),
      chainId: CHAIN,
      endpoint: "https://rpc-2.example.net",
      actions: [],
    },
  ];
  const past: Attention["items"] = [
    {
      ...nowhere,
      id: "reorg",
      severity: "CRITICAL",
      code: "DEEP_REORG",
      sentence: "Blocks that had been final left the chain: 2 outcomes are open again.",
      since: at(600),
      chainId: CHAIN,
      actions: [],
    },
  ];
  return {
    revision: isCalm ? "calm" : "night",
    asOf: at(1),
    items: isCalm ? [] : items,
    more: 0,
    past: isCalm ? [] : past,
  };
}

function notices({ at, words }: Staged, signer: string | null): Notices["items"] {
  if (signer !== null && signer !== SIGNERS[3]) return [];
  const one = (noticeId: string, seconds: number): Notices["items"][number] => ({
    ...{ noticeId, kind: "EXTERNAL_KEY_USE", chainId: CHAIN, signer: SIGNERS[3], nodeId: null, times: 1 },
    ...{ firstSeenAt: at(seconds), lastSeenAt: at(seconds), overAt: null, acknowledged: null },
    evidence: [{ at: at(seconds), nonce: 31, through: 31, txHash: hash(31), txId: null }],
  });
  const before = one("5c1f9a70-1e6f-4a58-9d43-0c2b7f2f6a10", 90_000);
  const why = words ?? "the finance team's own wallet, ticket 4711";
  return [one(FOREIGN_NOTICE, 5_400), { ...before, acknowledged: { by: "operator:ada", at: at(86_000), why } }];
}

function overview({ at, isCalm, lanes }: Staged): Overview {
  return {
    revision: "r",
    asOf: at(1),
    lanes,
    states: {
      CREATED: 2,
      ALLOCATED: 41,
      TRACKING: isCalm ? 22 : 128,
      CONFIRMED: 1_284_507,
      FAILED_FINAL: 312,
      STUCK: isCalm ? 0 : 2,
    },
    createdPerMinute: 184.2,
    completedPerMinute: 179,
    timeToFinalitySeconds: { p50: 6.4, p95: 19.2 },
    oldestPending: { txId: STUCK_TX, chainId: CHAIN, signer: SIGNERS[0], nonce: 42, ageSeconds: isCalm ? 11 : 291 },
    chains: [
      {
        chainId: CHAIN,
        reachable: true,
        head: 23_114_502,
        headSince: at(2),
        blockSeconds: 2,
        stalled: false,
        baseFee: "4800000000",
        tip: `${15n * 10n ** 8n}`,
        endpoints: [
          { url: "https://rpc-1.example.net", status: "up", behind: 0 },
          { url: "https://rpc-2.example.net", status: isCalm ? "up" : "failing", behind: null },
        ],
        explorer: "https://explorer.example.net",
      },
      {
        chainId: 10,
        reachable: true,
        head: 128_400_117,
        headSince: at(isCalm ? 1 : 340),
        blockSeconds: 2,
        stalled: !isCalm,
        baseFee: "61000000",
        tip: `${15n * 10n ** 8n}`,
        endpoints: [{ url: "https://op.example.net", status: "up", behind: 0 }],
        explorer: null,
      },
    ],
  };
}

type Status = Pick<Transaction, "state" | "subState">;
const ROAD: readonly Status[] = [
  { state: "STUCK", subState: null },
  { state: "TRACKING", subState: "BROADCAST" },
  { state: "ALLOCATED", subState: null },
  { state: "TRACKING", subState: "MINED" },
  { state: "CONFIRMED", subState: null },
  { state: "TRACKING", subState: "PENDING" },
  { state: "CONFIRMED", subState: null },
  { state: "FAILED_FINAL", subState: "CANCELLED" },
  { state: "CONFIRMED", subState: null },
  { state: "FAILED_FINAL", subState: "REVERTED" },
  { state: "CONFIRMED", subState: null },
];

const AWAITING = 0xaa;
const AWAITED: Status = { state: "CREATED", subState: "AWAITING_APPROVAL" };

function transaction({ at, words }: Staged, n: number): Transaction {
  const status =
    n === AWAITING ? AWAITED : n === 42 ? (ROAD[0] as Status) : (ROAD[1 + (n % (ROAD.length - 1))] as Status);
  const isOver = status.state === "CONFIRMED" || status.state === "FAILED_FINAL";
  const isMined = isOver || status.subState === "MINED";
  const created = n === 42 ? 291 : 12 + (n % 60) * 3;
  const kinds = n === 42 ? (["initial", "reprice", "reprice"] as const) : (["initial"] as const);
  const attempts: Transaction["attempts"] = kinds.map((kind, index) => ({
    ordinal: index + 1,
    kind,
    txHash: hash(n * 10 + index),
    gas: "65000",
    type: "eip1559",
    maxFeePerGas: n === 42 ? ["900000000", "1050000000", "1200000000"][index] : "6000000000",
    maxPriorityFeePerGas: "100000000",
    createdAt: at(created - 1 - index * 40),
    firstSentAt: at(created - 1 - index * 40),
  })) as Transaction["attempts"];
  const isSigned = status.state !== "ALLOCATED" && status.state !== "CREATED";
  const approval = {
    rule: "signers.*.maxValue.perTransaction",
    expiresAt: at(-3_000),
    worstCost: `${25n * 10n ** 17n}` as const,
  };
  return {
    ...(status.state === "CREATED" && { approval }),
    txId: idOf(n),
    chainId: CHAIN,
    signer: SIGNERS[n % 3 === 0 ? 0 : n % 3 === 1 ? 1 : 2] as Address,
    requestId: words ?? `payout-${20_418 + n}`,
    owner: "checkout",
    nonce: status.state === "CREATED" ? null : n,
    ...status,
    txHash: isSigned ? (attempts.at(-1)?.txHash ?? null) : null,
    payload: {
      to: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
      data: `0xa9059cbb${SIGNERS[3].slice(2).toLowerCase().padStart(64, "0")}${(2_500_000).toString(16).padStart(64, "0")}`,
      value: n === AWAITING ? `${2n * 10n ** 18n}` : "0",
    },
    decoded: {
      contract: words ?? null,
      name: words ?? "transfer",
      args: [
        { name: "to", value: SIGNERS[3].toLowerCase() },
        { name: "amount", value: "2500000" },
      ],
    },
    gas: n === AWAITING ? null : "65000",
    metadata: words === undefined ? { customer: "c-17", batch: "2026-11-17" } : { words },
    validUntil: null,
    heldSince: null,
    attempts: isSigned ? attempts : [],
    receipt: isMined
      ? {
          txHash: attempts.at(-1)?.txHash ?? hash(n),
          blockNumber: 23_114_490,
          blockHash: hash(n + 5),
          transactionIndex: 14,
          status: status.subState === "REVERTED" ? "reverted" : "success",
          gasUsed: "48211",
          effectiveGasPrice: "4900000000",
          contractAddress: null,
        }
      : null,
    lastError: words ?? (n === 42 ? "UNDERPRICED: max fee per gas less than block base fee" : null),
    submitAttempts: n === 42 ? 9 : n === AWAITING ? 0 : 1,
    lastSubmittedAt: n === AWAITING ? null : at(20),
    nextResubmitAt: isOver || n === AWAITING ? null : at(-40),
    createdAt: at(created),
    updatedAt: at(5),
    confirmedAt: status.state === "CONFIRMED" ? at(5) : null,
    history: steps({ at, created, n, words, isMined, isOver }),
  };
}

/** On-chain data of a transaction: a token transfer, and an unknown event with text that a contract chose. */
function onChain({ at, words }: Staged): NonNullable<Transaction["onChain"]> {
  const word = (value: number) => value.toString(16).padStart(64, "0");
  const token = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913";
  return {
    kind: "shown",
    askedAt: at(0),
    blockHash: hash(5),
    logs: [
      {
        address: token,
        topics: ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"],
        data: `0x${word(2_500_000)}`,
        dataLength: 32,
        event: {
          name: words ?? "Transfer",
          args: [
            { name: "from", value: SIGNERS[0].toLowerCase() },
            { name: "to", value: SIGNERS[3].toLowerCase() },
            { name: "value", value: "2500000" },
          ],
        },
      },
      { address: token, topics: [hash(1)], data: `0x${"ab".repeat(1_024)}`, dataLength: 20_000, event: null },
    ],
    more: 3,
    revert: { name: "Error", message: words ?? "ERC20: transfer amount exceeds balance", data: "0x08c379a0" },
  };
}

interface Lifetime {
  readonly at: (secondsAgo: number) => string;
  readonly created: number;
  readonly n: number;
  readonly words: string | undefined;
  readonly isMined: boolean;
  readonly isOver: boolean;
}

function steps({ at, created, n, words, isMined, isOver }: Lifetime): NonNullable<Transaction["history"]> {
  const step = (ordinal: number, event: string, secondsAgo: number, more: object = {}) => ({
    ordinal,
    event,
    fromState: null,
    state: "TRACKING",
    subState: "PENDING",
    nodeId: ordinal > 5 ? "node-c" : "node-a",
    fencingToken: ordinal > 5 ? 8 : 7,
    reason: null,
    actor: null,
    audit: null,
    count: 1,
    firstAt: at(secondsAgo),
    lastAt: at(secondsAgo),
    ...more,
  });
  const begin = [
    step(1, "allocate", created - 0.012, { state: "ALLOCATED", subState: null }),
    step(2, "sign", created - 0.031),
    step(3, "broadcast", created - 0.118, { subState: "BROADCAST" }),
  ];
  const rest =
    n === 42
      ? [
          step(4, "submitFailed", created - 40, {
            count: 6,
            lastAt: at(created - 90),
            reason: words ?? "UNDERPRICED: max fee per gas less than block base fee",
          }),
          step(5, "reprice", created - 60, { actor: "policy", count: 2, lastAt: at(created - 120) }),
          step(6, "stick", 200, {
            state: "STUCK",
            subState: null,
            reason: "the ceiling of 1.2 gwei is reached, and the market asks for 4.8",
          }),
        ]
      : [
          ...(isMined ? [step(4, "mine", 9, { subState: "MINED" })] : []),
          ...(isOver ? [step(5, "confirm", 5, { state: "CONFIRMED", subState: null })] : []),
        ];
  return [...begin, ...rest] as NonNullable<Transaction["history"]>;
}

function transactionPage(scene: Staged, query: URLSearchParams) {
  const limit = Number(query.get("limit") ?? 50);
  const state = query.get("state");
  const all = Array.from({ length: 400 }, (_, index) => transaction(scene, 400 - index + 30));
  const fitting = [transaction(scene, 42), transaction(scene, AWAITING), ...all].filter(
    (each) => state === null || each.state === state,
  );
  return { items: fitting.slice(0, limit), next: fitting.length > limit ? "more" : null };
}

function explanation({ words }: Staged): Explanation {
  return {
    summary:
      words ??
      "STUCK at nonce 42: its fee cap of 1.2 gwei is below the base fee of 4.8 gwei, and has been for 37 blocks",
    causes: [
      { code: "FEE_BELOW_BASE_FEE", text: "the newest block asks for 4.8 gwei, and it offers at most 1.2" },
      {
        code: "FEE_CEILING_REACHED",
        text: "it was repriced twice, and may not be offered for more than 1.2 gwei by itself",
      },
    ],
    help: [
      { code: "REPRICE", text: "offer more" },
      { code: "CANCEL", text: "give it up safely" },
      { code: "RAISE_CEILING", text: "raise FENCEPOST_MAX_FEE_GWEI, or wait until the market is below it" },
    ],
    actions: (["reprice", "cancel"] as const).map((action) => ({
      action,
      code: action === "reprice" ? "REPRICE" : "CANCEL",
      label: action === "reprice" ? "Offer more" : "Cancel it",
      method: "POST",
      path: `/api/v1/tx/${STUCK_TX}/${action}`,
      body: { reason: "explain: FEE_BELOW_BASE_FEE" },
      scope: "operate",
    })),
  };
}

/** The n-th signer, for any number of lanes. */
export function signerOf(n: number): Address {
  return SIGNERS[n] ?? `0x${(n * 7_919 + 0x1000).toString(16).padStart(40, "a")}`;
}

function lane({ at, isCalm, lanes }: Staged, n: number): SignerLane {
  const address = signerOf(n);
  const isStuck = n === 0 && !isCalm;
  const isUnused = n > 4 && lanes === SIGNERS.length;
  return {
    chainId: CHAIN,
    signer: address,
    name: null,
    cursor: isUnused ? null : 60 + n * 49,
    chainCounts: { latest: 42 + n * 49, pending: 42 + n * 49, asOf: at(4) },
    pending: isUnused ? 0 : isStuck ? 17 : n % 3,
    confirmed: isUnused ? 0 : 41 + n * 48,
    failed: n,
    stuck: isStuck ? 1 : 0,
    reserved: n === 3 ? 1 : 0,
    holes:
      n === 2 && !isCalm
        ? ([
            {
              nonce: 108,
              why: "released",
              detail: "its caller gave the reservation back",
              since: at(95),
            },
          ] as unknown as SignerLane["holes"])
        : [],
    oldestPendingAgeSeconds: isStuck ? 291 : null,
    headOfLine: isStuck ? { txId: STUCK_TX, nonce: 42, state: "STUCK", createdAt: at(291), held: false } : null,
    balance: n === 1 ? "2100000000000000" : n < 6 ? `${BigInt(3 + n) * 41n * 10n ** 17n}` : null,
    balanceAsOf: n < 6 ? at(9) : null,
    signerAway: null,
    unowned: null,
    window: isUnused
      ? null
      : {
          configured: 64,
          open: isStuck ? 16 : 64,
          inFlight: isStuck ? 16 : n % 3,
          limitedBy: isStuck ? "NO_FUTURE_NONCES" : null,
        },
    suspended: n === 4,
    suspendedBy: n === 4 ? "OPERATOR" : null,
    owner: isUnused ? null : { nodeId: `node-${"abc"[n % 3]}`, instanceId: idOf(900 + n), url: "http://10.0.0.7:3000" },
    lease: isUnused ? null : { fencingToken: 7 + n, acquiredAt: at(9_000), expiresAt: at(9) },
    decisions: [
      {
        action: "suspend",
        actor: "operator:on-call",
        reason: "the invoice is being checked",
        nodeId: "node-a",
        fencingToken: 6,
        at: at(7_400),
      },
      {
        action: "resume",
        actor: "operator:on-call",
        reason: "it is right",
        nodeId: "node-a",
        fencingToken: 7,
        at: at(7_100),
      },
    ],
  };
}

function signersPage(scene: Staged, query: URLSearchParams) {
  const limit = Number(query.get("limit") ?? 100);
  const after = Number(query.get("after") ?? 0);
  const items = Array.from({ length: Math.min(limit, scene.lanes - after) }, (_, index) => lane(scene, after + index));
  return { items, next: after + limit < scene.lanes ? String(after + limit) : null };
}

function ruler({ at }: Staged, query: URLSearchParams): NonceRuler {
  const from = Number(query.get("from") ?? 0);
  const to = Number(query.get("to") ?? 60);
  const spans: NonceRuler["spans"] = [
    { from: 0, to: 30, kind: "final" },
    { from: 31, to: 31, kind: "foreign", detail: "sent by another program" },
    { from: 32, to: 39, kind: "final" },
    { from: 40, to: 41, kind: "mined" },
    { from: 42, to: 42, kind: "stuck", txId: STUCK_TX },
    { from: 43, to: 49, kind: "inFlight" },
    { from: 50, to: 50, kind: "hole", detail: "given back" },
    { from: 51, to: 52, kind: "reserved", reservationId: idOf(77) },
    { from: 53, to: 59, kind: "queued" },
  ];
  const shown = spans.filter((span) => span.to >= from && span.from <= to);
  return {
    chainId: CHAIN,
    signer: SIGNERS[0],
    from,
    to,
    cursor: 60,
    mined: 42,
    minedAsOf: at(4),
    final: 40,
    spans: shown,
  };
}

function caller(scopes: Caller["scopes"] = [...SCOPES]): Caller {
  return { key: "on-call", scopes, signers: null, chains: null, nodeId: "node-a", version: "0.1.0" };
}

/** History with a quiet night, a burst, and a fee peak that left a transaction stuck. */
function strip({ at, isCalm }: Staged, query: URLSearchParams): History {
  const to = Date.parse(query.get("to") ?? at(0));
  const from = Date.parse(query.get("from") ?? at(86_400));
  const stepSeconds = Number(query.get("step") ?? 600);
  const stepMs = stepSeconds * 1_000;
  const count = Math.floor((to - from) / stepMs);
  const isOneChain = query.has("chainId");
  const gwei = (value: number) => `${BigInt(Math.round(value * 1e9))}` as const;
  const buckets: History["buckets"] = Array.from({ length: count }, (_, index) => {
    const share = index / count;
    const peak = isCalm ? 0 : Math.max(0, 1 - Math.abs(share - 0.86) * 14);
    const created = Math.round((30 + 26 * Math.sin(share * 9) + 60 * peak + (index % 5) * 3) * (stepSeconds / 60));
    const failed = share > 0.84 && share < 0.9 ? Math.round(created * 0.06) : 0;
    return {
      at: new Date(Math.ceil(from / stepMs) * stepMs + index * stepMs).toISOString(),
      created,
      completed: Math.round(created * (1 - 0.35 * peak)),
      failed,
      stuck: 0,
      reorged: 0,
      finalityMs: { p50: 6_000 + 3_000 * peak + (index % 7) * 200, p95: 14_000 + 30_000 * peak + (index % 9) * 700 },
      baseFee: isOneChain ? { avg: gwei(1.1 + 3.7 * peak + (index % 4) * 0.06), max: gwei(6) } : null,
      offered: isOneChain ? { avg: gwei(2.6 + 2 * peak), max: gwei(6) } : null,
      fees: `${BigInt(created) * 48_211n * 1_900_000_000n}`,
      troubles: !isCalm && index === Math.floor(count * 0.86) ? [{ code: "STUCK", count: 2 }] : [],
    };
  });
  const spend = { chainId: CHAIN, completed: 4_120, fees: "377490000000000001" } as const;
  return {
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    stepSeconds,
    buckets: buckets.filter((_, index) => index % 23 !== 7),
    keys: [{ key: "checkout", ...spend }],
    signers: [
      { signer: SIGNERS[0], name: "payouts-1", ...spend },
      { signer: SIGNERS[1], name: null, ...spend, completed: 31, fees: "2840000000000000" },
    ],
  };
}

function costs(query: URLSearchParams): Costs {
  const figures = { chainId: CHAIN, transactions: 1_204, confirmed: 1_190, failed: 14, failedShare: 0.0116 };
  const amounts = { fees: "110374999999999999", failedFees: "1200000000000000", value: "3200000000000000000" } as const;
  const [from, to] = [String(query.get("from")), String(query.get("to"))];
  return { by: "day", from, to, items: [{ group: "2026-11-17", ...figures, ...amounts }], next: null };
}

function completions({ at, words }: Staged, after: number) {
  const items: Completion[] = Array.from({ length: Math.max(0, 24 - after) }, (_, index) => {
    const seq = after + index + 1;
    const status = [ROAD[4], ROAD[4], ROAD[4], ROAD[7], ROAD[9]][seq % 5] as Status;
    return {
      seq,
      epoch: 1,
      txId: idOf(seq),
      chainId: CHAIN,
      signer: SIGNERS[seq % 3] as Address,
      requestId: words ?? `payout-${20_418 + seq}`,
      nonce: seq,
      ...(status as Pick<Completion, "state" | "subState">),
      settled: true,
      txHash: hash(seq),
      at: at(300 - seq * 9),
    };
  });
  return { epoch: 1, items, next: Math.max(after, 24) };
}

function found(text: string) {
  return [
    {
      kind: "transaction",
      label: `payout-20460, nonce 42, STUCK: its request id begins with ${text}`,
      txId: STUCK_TX,
      chainId: CHAIN,
      signer: SIGNERS[0],
      nonce: 42,
    },
    { kind: "signer", label: SIGNERS[0], chainId: CHAIN, signer: SIGNERS[0] },
  ];
}

function nodes({ at }: Staged) {
  return ["a", "b", "c"].map((name, index) => ({
    nodeId: `node-${name}`,
    instanceId: idOf(800 + index),
    url: `http://10.0.0.${7 + index}:3000`,
    version: "0.1.0",
    mode: "worker-queue",
    startedAt: at(86_400 * (index + 1)),
    heartbeatAt: at(1),
    lanes: [14, 11, 12][index],
  }));
}

function history({ at }: Staged): ClusterHistory {
  return {
    takeovers: [0, 1, 2, 3].map((index) => ({
      chainId: CHAIN,
      signer: SIGNERS[index] as Address,
      from: "node-d",
      to: `node-${"abc"[index % 3]}`,
      fencingToken: 7 + index,
      why: "its heartbeat ran out",
      at: at(5_400 + index),
    })),
    nodes: [
      ...["a", "b", "c"].map((name, index) => ({
        nodeId: `node-${name}`,
        instanceId: idOf(800 + index),
        version: "0.1.0",
        startedAt: at(86_400 * (index + 1)),
        heartbeatAt: at(1),
        state: "alive" as const,
      })),
      {
        nodeId: "node-d",
        instanceId: idOf(804),
        version: "0.1.0",
        startedAt: at(90_000),
        heartbeatAt: at(5_412),
        state: "gone" as const,
      },
    ],
    database: [
      { epoch: 1, systemIdentifier: "7551298446110257206", timeline: "1", mayHaveLost: false, seenAt: at(400_000) },
    ],
  };
}

const policies = ({ at }: Staged) => ({
  version: 3,
  hash: "0x2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
  policies: { signers: { "*": { maxCost: { perDay: "1000000000000000000" } } } },
  changedAt: at(90_000),
  changedBy: "operator:treasury",
  reason: "one ether a day for every signer",
});

function usage({ at }: Staged) {
  const windows = {
    value: "410000000000000000",
    cost: "420000000000000000",
    maxValue: null,
    maxCost: "1000000000000000000",
  };
  return {
    at: at(0),
    signers: SIGNERS.slice(0, 3).map((signer) => ({
      chainId: CHAIN,
      signer,
      since: at(3_000),
      hour: windows,
      day: { ...windows, cost: "960000000000000000" },
    })),
    keys: [{ chainId: CHAIN, key: "checkout", since: at(3_000), hour: windows, day: windows }],
  };
}

function keys({ at }: Staged) {
  const item = {
    createdAt: at(900_000),
    signers: null,
    chains: null,
    createsPerSecond: null,
    readsPerSecond: null,
    queueShare: null,
  };
  return {
    items: [
      {
        ...item,
        name: "checkout",
        scopes: ["read", "submit"],
        secrets: [{ secretId: "5f1d7a84", createdAt: at(900_000) }],
      },
      {
        ...item,
        name: "on-call",
        scopes: ["read", "operate", "admin"],
        secrets: [{ secretId: "77aa01bc", createdAt: at(90_000) }],
      },
    ],
  };
}
