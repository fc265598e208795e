import { afterAll, beforeAll, beforeEach, describe, expect, expectTypeOf, it } from "vitest";
import { createHttpServer, type HttpServer } from "../../src/adapters/http/server.ts";
import { systemClock } from "../../src/adapters/system/clock.ts";
import type { TransactionView } from "../../src/application/api.ts";
import type { FencepostApi } from "../../src/application/operations/calls.ts";
import { createClient, type FencepostClient, type FencepostFace, SentTransaction } from "../../src/client/index.ts";
import type { Notice } from "../../src/domain/cluster/notices.ts";
import { FencepostError } from "../../src/domain/errors.ts";
import { createMask } from "../../src/domain/text/mask.ts";
import * as library from "../../src/index.ts";
import { createFace } from "../../src/main/library/embedded-face.ts";
import { httpOptions } from "../support/http-app.ts";
import { permit } from "../support/messages.ts";
import {
  CHAIN_ID,
  RECIPIENT_EIP55,
  SIGNER,
  SIGNER_EIP55,
  sampleChecksum,
  sampleCompletion,
  sampleCreated,
  sampleHash,
  sampleInstance,
  sampleLease,
  sampleSigner,
  sampleTransaction,
  sampleTxId,
  scriptedApi,
} from "../support/scripted-api.ts";

/** Tests one scripted node through both interfaces: the SDK over HTTP and the embedded library. */

const script: { -readonly [Method in keyof FencepostApi]?: FencepostApi[Method] } = {};
let server: HttpServer;
let sdk: FencepostClient;
let embedded: FencepostFace;
const closing = new AbortController();

beforeAll(async () => {
  const unscripted = scriptedApi();
  const api = new Proxy(unscripted, {
    get: (_, method: keyof FencepostApi) => script[method] ?? unscripted[method],
  });
  server = createHttpServer(httpOptions({}, { api, clock: systemClock }));
  const { url } = await server.listen("127.0.0.1", 0);
  sdk = createClient({ url, repeat: false });
  embedded = createFace({
    api,
    checksum: sampleChecksum,
    mask: createMask([]),
    clock: systemClock,
    closing: closing.signal,
    take: (intent) => api.create(intent),
  });
});
afterAll(() => server.close());
beforeEach(() => {
  for (const method of Object.keys(script) as (keyof FencepostApi)[]) delete script[method];
});

const TX = sampleTxId(1);
/** A transaction whose reads are given up: on a busy machine the server gets such a read only during a later test. */
const LATE = sampleTxId(8);
const intent = { signer: SIGNER_EIP55, requestId: "order-42", payload: { to: RECIPIENT_EIP55, value: 1n } } as const;
const inForce = {
  ...{ version: 2, hash: "0x01" as const, policies: {} },
  ...{ changedAt: new Date(0), changedBy: "operator:a", reason: "r" },
};
const used = {
  since: new Date(0),
  hour: { value: 1n, cost: 2n, maxValue: null, maxCost: 3n },
  day: { value: 1n, cost: 2n, maxValue: 4n, maxCost: null },
};
const reservation = {
  reservationId: sampleTxId(9),
  lane: { chainId: CHAIN_ID, signer: SIGNER },
  nonce: 7,
  requestId: "r",
  owner: null,
  expiresAt: new Date(0),
  state: "RESERVED" as const,
  ttlMs: 1,
  txId: null,
};
const terms = {
  name: "checkout",
  scopes: ["read" as const],
  signers: [SIGNER],
  chains: null,
  createsPerSecond: null,
  readsPerSecond: null,
  queueShare: 0.5,
};
const history = {
  ordinal: 1,
  event: "amend" as const,
  fromState: "ALLOCATED" as const,
  state: "ALLOCATED" as const,
  subState: null,
  nodeId: "n",
  token: 3,
  reason: "r",
  decision: { actor: "hook", audit: { why: 1 } },
  count: 1,
  firstAt: new Date(0),
  lastAt: new Date(1),
};

/** Adds a private member to a result of the embedded node, which callers must not see. */
const inside = <T>(value: T): T => ({ ...value, internal: { secret: 1n } });

const aNotice = (): Notice =>
  inside({
    ...{ noticeId: TX, kind: "EXTERNAL_KEY_USE" as const, lane: { chainId: CHAIN_ID, signer: SIGNER }, nodeId: null },
    ...{ firstSeenAt: new Date(0), lastSeenAt: new Date(1), times: 2, overAt: null },
    evidence: [{ at: new Date(1), nonce: 7, through: 7, txHash: null, txId: TX }],
    acknowledged: { by: "operator:a", at: new Date(2), why: "w" },
  });

const signed = {
  ...{ signatureId: TX, lane: { chainId: CHAIN_ID, signer: SIGNER }, requestId: "permit-7", rule: "permit" },
  ...{ kind: "typedData" as const, domain: "Gold", digest: `0x${"d1".repeat(32)}` as const, state: "SIGNED" as const },
};
const requestedSignature = () =>
  inside({
    ...{ ...signed, owner: "checkout", amount: 7n, message: null, typedData: permit() },
    ...{ createdAt: new Date(0), signedAt: new Date(1), expiresAt: new Date(2) },
    decision: { actor: "operator:a", reason: "r", at: new Date(1) },
  });
const aWebhook = inside({
  ...{ subscriberId: sampleTxId(9), name: "books", url: "https://books.example/", state: "ACTIVE" as const },
  ...{ signers: [SIGNER], chains: null, keys: null, states: null, paused: null, failingSince: null, epoch: 1 },
  ...{ position: 3, behind: 1, behindSince: new Date(0), nextTryAt: null, deliveredAt: null, rotatedUntil: null },
  ...{ lastAnswer: { status: 200, reason: null, at: new Date(0) }, giveUpAfterSeconds: 60, generation: 1 },
  ...{ nodeId: "n", createdBy: null, createdAt: new Date(0), changedBy: "operator:a", changedAt: new Date(0) },
  ...{ secretId: "internal", token: 1, readAt: new Date(0) },
});

const everything: Partial<FencepostApi> = {
  requestSignature: async () =>
    inside({ ...signed, signature: `0x${"5e".repeat(65)}` as const, at: "1970-01-01T00:00:00.000Z", expiresAt: null }),
  signatures: async () => ({ items: [requestedSignature()], next: "more" }),
  signature: async () => requestedSignature(),
  decideSignature: async () => requestedSignature(),
  create: async () => sampleCreated(),
  createBatch: async (requests) => requests.map(() => sampleCreated()),
  transaction: async () =>
    inside(
      sampleTransaction({
        payload: { to: SIGNER, data: "0x", value: 1n, accessList: [{ address: SIGNER, storageKeys: [] }] },
      }),
    ),
  transactionByRequest: async () => inside(sampleTransaction({ history: [history], confirmations: [] } as object)),
  transactions: async () => ({
    items: [inside(sampleTransaction({ metadata: { order: { deep: 1 } } }))],
    next: "more",
  }),
  explain: async () => ({
    summary: "it waits",
    causes: [{ code: "STUCK", text: "t", since: new Date(0) }],
    help: [{ code: "WAIT", text: "wait" }],
    actions: [
      {
        action: "resumeLane",
        code: "RESUME_LANE",
        label: "Resume the lane",
        method: "POST",
        path: "/api/v1/signers/0x/resume",
        body: { reason: "explain: LANE_SUSPENDED", chainId: 1 },
        scope: "operate",
      },
    ],
  }),
  completions: async () => ({ epoch: 5, items: [inside(sampleCompletion())], next: 1 }),
  signers: async () => ({ items: [inside(sampleSigner())], next: null }),
  signer: async () => [inside(sampleSigner())],
  actOnLane: async () => [inside(sampleSigner({ suspendedBy: "OPERATOR" }))],
  act: async () => inside(sampleTransaction()),
  reserveNonce: async () => ({ outcome: "created", reservation: inside(reservation) }),
  reservation: async () => inside(reservation),
  releaseNonce: async () => inside(reservation),
  submitReserved: async () => sampleCreated(),
  markUsed: async () => sampleCreated(),
  checkPolicy: async () => inside({ allowed: false, rule: "signer.to", detail: "d", value: 1n, cost: 2n }),
  policies: async () => inside({ ...inForce, policies: { a: { b: 1 } } }),
  applyPolicies: async () => inside(inForce),
  policyUsage: async () => ({
    at: new Date(0),
    signers: [{ ...used, lane: { chainId: CHAIN_ID, signer: SIGNER } }],
    keys: [{ ...used, chainId: CHAIN_ID, key: "k" }],
  }),
  attention: async () => ({
    revision: "r1",
    asOf: new Date(0),
    items: [
      inside({
        ...{ id: "kill:1", severity: "CRITICAL" as const, code: "KILLED" as const, sentence: "s", since: new Date(0) },
        ...{
          chainId: CHAIN_ID,
          signer: SIGNER,
          txId: TX,
          nonce: 7,
          nodeId: "n",
          endpoint: null,
          waiting: 3,
          over: false,
        },
        actions: [{ action: "endKill", label: "l", method: "DELETE" as const, path: "/p", body: { chainId: 1 } }],
      }),
    ],
    more: 2,
    past: [],
  }),
  overview: async () => ({
    ...{ revision: "r2", asOf: new Date(9_000), lanes: 1 },
    states: { CREATED: 0, ALLOCATED: 1, TRACKING: 2, STUCK: 3, CONFIRMED: 4, FAILED_FINAL: 5 },
    ...{ createdPerMinute: 1.5, completedPerMinute: null, timeToFinalitySeconds: { p50: 1, p95: 2 } },
    oldestPending: inside({ lane: { chainId: CHAIN_ID, signer: SIGNER }, txId: TX, nonce: 7, createdAt: new Date(0) }),
    chains: [
      inside({
        ...{ chainId: CHAIN_ID, reachable: true, head: 5, baseFee: 7n, tip: 2n, explorer: "https://etherscan.io" },
        ...{ headSince: new Date(8_000), blockSeconds: 12, stalled: false },
        endpoints: [inside({ url: "https://rpc.example", status: "up" as const, behind: 0 })],
      }),
    ],
  }),
  search: async () => [inside({ kind: "signer" as const, label: "l", chainId: CHAIN_ID, signer: SIGNER })],
  nonceRuler: async () =>
    inside({
      ...{
        lane: { chainId: CHAIN_ID, signer: SIGNER },
        from: 0,
        to: 1,
        cursor: 2,
        mined: null,
        minedAsOf: null,
        final: 1,
      },
      spans: [inside({ from: 0, to: 1, kind: "stuck" as const, txId: TX })],
    }),
  notices: async () => [aNotice()],
  acknowledge: async () => aNotice(),
  clusterHistory: async () => ({
    takeovers: [
      inside({
        ...{ lane: { chainId: CHAIN_ID, signer: SIGNER }, from: null, to: "b", token: 2, why: "w", at: new Date(0) },
      }),
    ],
    nodes: [
      inside({
        ...{ nodeId: "n", instanceId: "i", version: "1", state: "alive" as const },
        ...{ startedAt: new Date(0), heartbeatAt: new Date(0) },
      }),
    ],
    database: [{ epoch: 1, systemIdentifier: "s", timeline: "1", mayHaveLost: false, seenAt: new Date(0) }],
  }),
  history: async () =>
    inside({
      ...{ from: new Date(0), to: new Date(1), stepSeconds: 60 },
      buckets: [
        inside({
          ...{ at: new Date(0), created: 1, completed: 2, failed: 1, stuck: 0, reorged: 0, fees: 7n },
          ...{ finalityMs: { p50: 1, p95: 2 }, baseFee: { avg: 1n, max: 2n }, offered: null },
          troubles: [{ code: "STUCK", count: 1 }],
        }),
      ],
      keys: [inside({ key: null, chainId: CHAIN_ID, completed: 1, fees: 7n })],
      signers: [inside({ signer: SIGNER, name: "payouts-1", chainId: CHAIN_ID, completed: 1, fees: 7n })],
    }),
  costs: async () =>
    inside({
      ...{ by: "signer" as const, from: new Date(0), to: new Date(1), next: null },
      items: [
        inside({
          ...{ group: SIGNER, chainId: CHAIN_ID, transactions: 3, confirmed: 1, failed: 1, failedShare: 0.5 },
          ...{ fees: 7n, failedFees: 3n, value: 1n },
        }),
      ],
    }),
  abis: async () => inside({ items: [], configured: [], changedAt: null, changedBy: null }),
  putAbis: async () => ({
    items: [{ name: "Payouts", addresses: [SIGNER], abi: ["event Paid(address to)"] }],
    ...{ configured: [], changedAt: new Date(0), changedBy: "operator:a" },
  }),
  me: async () =>
    inside({ key: "a", scopes: ["read" as const], signers: [SIGNER], chains: null, nodeId: "n", version: "1" }),
  namedSigners: async () => [inside({ signer: SIGNER, name: "payouts-1" })],
  nodes: async () => [inside(sampleInstance())],
  leases: async () => [inside(sampleLease()), sampleLease({ owner: null })],
  kill: async () => ({ durable: true, kills: [], nodes: [{ nodeId: "n", url: "u", told: true }] }),
  endKill: async () => ({ durable: true, kills: [], nodes: [] }),
  keys: async () => [{ ...terms, createdAt: new Date(0), secrets: [{ secretId: "abcdef01", createdAt: new Date(0) }] }],
  addKey: async () => ({ ...terms, secret: "s", secretId: "abcdef01" }),
  revokeKey: async () => undefined,
  webhooks: async () => [aWebhook],
  webhook: async () => aWebhook,
  addWebhook: async () => ({ ...aWebhook, secret: "whsec_" }),
  changeWebhook: async () => aWebhook,
  pauseWebhook: async () => aWebhook,
  resumeWebhook: async () => aWebhook,
  replayWebhook: async () => aWebhook,
  rotateWebhook: async () => ({ ...aWebhook, secret: "whsec_" }),
  testWebhook: async () => ({ delivered: true, status: 204, reason: "HTTP 204", seconds: 0.1 }),
  removeWebhook: async () => ({ subscriberId: TX, name: "books" }),
};

const reason = { reason: "r" };
const CALLS: Readonly<Record<string, (face: FencepostFace) => Promise<unknown>>> = {
  send: (face) => face.send(intent),
  sendMany: (face) => face.sendMany([intent, intent]),
  handle: (face) => face.handle(TX),
  get: (face) => face.get(TX),
  getByRequest: (face) =>
    face.getByRequest({ signer: SIGNER_EIP55, requestId: "r" }, { include: ["history", "confirmations"] }),
  explain: (face) => face.explain(TX),
  list: (face) => face.list({ limit: 1, order: "oldest" }),
  completionsPage: (face) => face.completionsPage({ after: 0, limit: 5 }),
  completions: async (face) => (await face.completions({ wait: 0 }).next()).value,
  outcomes: async (face) => {
    for await (const outcome of face.outcomes()) return outcome;
    return null;
  },
  reserveNonce: (face) => face.reserveNonce({ signer: SIGNER_EIP55 }),
  reservation: (face) => face.reservation(reservation.reservationId),
  submitReserved: (face) => face.submitReserved("r", "0x02"),
  markUsed: (face) => face.markUsed("r", sampleHash(1)),
  releaseNonce: (face) => face.releaseNonce("r"),
  withNonce: (face) => face.withNonce({ signer: SIGNER_EIP55 }, async () => ({ rawTransaction: "0x02" })),
  signers: (face) => face.signers(),
  signersPage: (face) => face.signersPage({ limit: 3 }),
  signer: (face) => face.signer(SIGNER_EIP55, { fresh: true }),
  sign: (face) => face.sign({ signer: SIGNER_EIP55, requestId: "permit-7", typedData: permit({ value: 7n }) }),
  signatures: (face) => face.signatures({ signer: SIGNER_EIP55, state: "SIGNED" }),
  signature: (face) => face.signature(TX),
  approveSignature: (face) => face.approveSignature(TX, reason),
  rejectSignature: (face) => face.rejectSignature(TX, reason),
  resubmit: (face) => face.resubmit(TX, reason),
  reprice: (face) => face.reprice(TX, { ...reason, maxFeePerGas: 5n }),
  cancel: (face) => face.cancel(TX, reason),
  replace: (face) => face.replace(TX, { ...reason, payload: intent.payload }),
  resolve: (face) => face.resolve(TX, { ...reason, action: "NOOP" }),
  approve: (face) => face.approve(TX, reason),
  reject: (face) => face.reject(TX, reason),
  suspendTransaction: (face) => face.suspendTransaction(TX, reason),
  resumeTransaction: (face) => face.resumeTransaction(TX, reason),
  checkPolicy: (face) => face.checkPolicy({ ...intent, key: "k" }),
  policies: (face) => face.policies(),
  applyPolicies: (face) => face.applyPolicies({ policies: {}, reason: "r", expectedVersion: 1 }),
  policyUsage: (face) => face.policyUsage({ key: "k" }),
  suspend: (face) => face.suspend(SIGNER_EIP55, reason),
  resume: (face) => face.resume(SIGNER_EIP55, reason),
  realign: (face) => face.realign(SIGNER_EIP55, { ...reason, nonce: 3 }),
  kill: (face) => face.kill({ signer: SIGNER_EIP55, reason: "r" }),
  endKill: (face) => face.endKill(),
  keys: (face) => face.keys(),
  addKey: (face) => face.addKey({ name: "checkout" }),
  revokeKey: (face) => face.revokeKey("checkout", { secretId: "abcdef01" }),
  webhooks: (face) => face.webhooks(),
  webhook: (face) => face.webhook(TX),
  addWebhook: (face) => face.addWebhook({ name: "books", url: "https://books.example/" }),
  changeWebhook: (face) => face.changeWebhook(TX, { states: ["CONFIRMED"] }),
  pauseWebhook: (face) => face.pauseWebhook(TX),
  resumeWebhook: (face) => face.resumeWebhook(TX, reason),
  replayWebhook: (face) => face.replayWebhook(TX, { after: 3 }),
  rotateWebhook: (face) => face.rotateWebhook(TX),
  testWebhook: (face) => face.testWebhook(TX),
  removeWebhook: (face) => face.removeWebhook(TX),
  attention: (face) => face.attention({ limit: 5 }),
  overview: (face) => face.overview({ revision: "r", wait: 0 }),
  search: (face) => face.search({ q: "order" }),
  nonceRuler: (face) => face.nonceRuler(SIGNER_EIP55, { from: 0, to: 1 }),
  notices: (face) => face.notices({ signer: SIGNER, open: true }),
  acknowledge: (face) => face.acknowledge(TX, { reason: "r", times: 2 }),
  clusterHistory: (face) => face.clusterHistory({ limit: 3 }),
  history: (face) => face.history({ chainId: CHAIN_ID, step: 60 }),
  costs: (face) => face.costs({ by: "signer" }),
  abis: (face) => face.abis(),
  putAbis: (face) => face.putAbis({ items: [{ name: "Payouts", abi: ["event Paid(address to)"] }] }),
  me: (face) => face.me(),
  namedSigners: (face) => face.namedSigners(),
  nodes: (face) => face.nodes(),
  leases: (face) => face.leases(),
};

describe("the library and the SDK", () => {
  it("share one interface, and each adds a few members", () => {
    expectTypeOf<FencepostClient>().toExtend<FencepostFace>();
    expectTypeOf<library.Fencepost>().toExtend<FencepostFace>();
    const shared = Object.keys(embedded).sort();
    expect(Object.keys(sdk).sort()).toEqual([...shared, "sendBatch"].sort());
    expect(shared.filter((name) => !(name in CALLS))).toEqual(["waitFor"]);
  });

  // protects [The SDK and the library] src/main/library/embedded-face.ts
  it.each(Object.keys(CALLS))("return the same results, with only the members of the contract: %s", async (name) => {
    Object.assign(script, everything);
    const call = CALLS[name] as (typeof CALLS)[string];
    const [here, there] = [await call(embedded), await call(sdk)];
    const ages = (text: string) => text.replace(/"oldestPendingAgeSeconds":\d+/g, "");
    expect(ages(JSON.stringify(sorted(here)))).toBe(ages(JSON.stringify(sorted(there))));
    expect(JSON.stringify(here) ?? "").not.toContain("internal");
  });

  it.each(Object.keys(CALLS).filter((name) => !["sendMany"].includes(name)))(
    // protects [The SDK and the library] src/main/library/embedded-face.ts
    "fail alike, with the same class and members: %s",
    async (name) => {
      const failing = () =>
        Promise.reject(new FencepostError("CONFLICT", "it was mined", { txHash: sampleHash(3), rule: "r" }));
      for (const method of Object.keys(everything) as (keyof FencepostApi)[])
        Object.assign(script, { [method]: failing });
      const call = CALLS[name] as (typeof CALLS)[string];
      const [here, there] = await Promise.all(
        [embedded, sdk].map((face) => call(face).catch((error: unknown) => error)),
      );
      expect(here).toBeInstanceOf(library.ConflictError);
      expect(there).toBeInstanceOf(library.ConflictError);
      const members = ({ ...error }: Record<string, unknown>) => ({ ...error, cause: null, requestId: null });
      expect(members(here as never)).toEqual(members(there as never));
    },
  );

  it.each([
    ["a limit that is none", (face: FencepostFace) => face.list({ limit: 0 }), "limit"],
    ["a parameter that is none", (face: FencepostFace) => face.list({ singer: "x" } as object), "singer"],
    ["a wait that is too long", (face: FencepostFace) => face.completionsPage({ wait: 99 }), "wait"],
    ["a search for nothing", (face: FencepostFace) => face.search({ q: "" }), "q"],
    ["a hold that is too long", (face: FencepostFace) => face.attention({ revision: "r", wait: 99 }), "wait"],
    ["a page that is too long", (face: FencepostFace) => face.signersPage({ limit: 9_999 }), "limit"],
  ])("refuse the same invalid input: %s", async (_, call, path) => {
    Object.assign(script, everything);
    for (const face of [embedded, sdk]) {
      await expect(call(face)).rejects.toMatchObject({ name: "InvalidRequestError", path });
    }
  });

  it("give each of many sends its own result, in order", async () => {
    script.createBatch = async (requests) =>
      requests.map((_, at) =>
        at === 1 ? new FencepostError("UNKNOWN_SIGNER", "nobody") : sampleCreated({ txId: sampleTxId(at) }),
      );
    for (const face of [embedded, sdk]) {
      const made = await face.sendMany([intent, { ...intent, requestId: "bad" }, intent]);
      expect(made.map((each) => (each instanceof SentTransaction ? each.id : [each.code, each.requestId]))).toEqual([
        sampleTxId(0),
        ["UNKNOWN_SIGNER", "bad"],
        sampleTxId(2),
      ]);
    }
  });

  // protects [The SDK and the library] src/client/deadline.ts
  it("end any call at its timeout, and at the caller's abort", async () => {
    script.transaction = () => new Promise(() => undefined);
    script.create = () => new Promise(() => undefined);
    const mine = new Error("enough");
    for (const face of [embedded, sdk]) {
      await expect(face.get(LATE, { timeoutMs: 20 })).rejects.toBeInstanceOf(library.TimeoutError);
      await expect(face.send(intent, { timeoutMs: 20 })).rejects.toMatchObject({
        code: "TIMEOUT",
        requestId: "order-42",
      });
      await expect(face.send(intent, { signal: AbortSignal.abort(mine) })).rejects.toBe(mine);
      await expect(face.waitFor(LATE, { timeoutMs: 20 })).rejects.toBeInstanceOf(library.TimeoutError);
    }
  });
});

describe.each(["the library", "the SDK"])("the transaction handle of %s", (which) => {
  const face = () => (which === "the SDK" ? sdk : embedded);
  const mined = {
    txHash: sampleHash(2),
    blockNumber: 5,
    blockHash: sampleHash(5),
    transactionIndex: 0,
    status: "success" as const,
    gasUsed: 1n,
    effectiveGasPrice: null,
    contractAddress: null,
  };
  /** Scripts the states of a transaction: each poll returns the next one, and the last one repeats. */
  const life = (...views: readonly Partial<TransactionView>[]) => {
    let looks = 0;
    script.create = async () => sampleCreated();
    script.transaction = async (txId) =>
      sampleTransaction(txId === LATE ? {} : views[Math.min(looks++, views.length - 1)]);
  };

  it("has the members of the create response", async () => {
    life({});
    const tx = await face().send(intent);
    expect(tx).toBeInstanceOf(SentTransaction);
    expect({ ...tx }).toEqual({
      txId: TX,
      chainId: CHAIN_ID,
      signer: SIGNER_EIP55,
      nonce: 7,
      state: "ALLOCATED",
      requestId: "order-42",
    });
    expect(tx.id).toBe(TX);
    expect(JSON.parse(JSON.stringify(tx))).toEqual({ ...tx });
  });

  it("resolves with the hash, the receipt and the final state", async () => {
    const fast = { pollIntervalMs: 1 };
    life({ txHash: null, state: "ALLOCATED" }, {}, { receipt: mined, txHash: sampleHash(2) }, { state: "CONFIRMED" });
    const tx = await face().send(intent);
    expect(await tx.hash(fast)).toBe(sampleHash(1));
    expect(tx.state).toBe("TRACKING");
    expect((await tx.mined(fast)).receipt).toMatchObject({ txHash: sampleHash(2), gasUsed: "1" });
    expect(await tx.final(fast)).toMatchObject({ state: "CONFIRMED" });
    expect(tx.state).toBe("CONFIRMED");
  });

  // protects [False receipts] src/adapters/http/exchange/views.ts, src/client/sent-transaction.ts
  it("does not report a revert before the revert is verified or final", async () => {
    const fast = { pollIntervalMs: 1 };
    const reverted = { receipt: { ...mined, status: "reverted" } } as const;
    life({}, reverted, reverted, { state: "CONFIRMED", receipt: mined });
    const tx = await face().send(intent);
    expect(await tx.get()).toMatchObject({ receipt: null });
    expect(await tx.get()).toMatchObject({ receipt: { status: "reverted", verified: false } });
    expect(await tx.mined(fast)).toMatchObject({ receipt: { status: "success", verified: true } });
    life(reverted, { ...reverted, state: "FAILED_FINAL", subState: "REVERTED" });
    expect(await tx.mined(fast)).toMatchObject({ receipt: { status: "reverted", verified: true } });
  });

  it("rejects the wait for the hash if the transaction ended unsigned", async () => {
    life({ state: "FAILED_FINAL", subState: "REJECTED", txHash: null, nonce: null });
    const tx = await face().send(intent);
    await expect(tx.hash()).rejects.toMatchObject({
      name: "ConflictError",
      detail: expect.stringContaining("REJECTED"),
    });
    expect(await tx.mined()).toMatchObject({ state: "FAILED_FINAL", receipt: null });
    expect(tx.nonce).toBeNull();
  });

  it("iterates over the state changes until the transaction is final", async () => {
    life(
      { state: "ALLOCATED", txHash: null },
      { state: "ALLOCATED", txHash: null },
      {},
      {},
      { receipt: mined },
      { state: "CONFIRMED", receipt: mined },
    );
    const seen: string[] = [];
    for await (const { state, txHash, receipt } of await face().send(intent)) {
      seen.push([state, txHash === null ? "-" : "hash", receipt === null ? "-" : "receipt"].join(" "));
    }
    expect(seen).toEqual(["ALLOCATED - -", "TRACKING hash -", "TRACKING hash receipt", "CONFIRMED hash receipt"]);
  });

  it("cancels, replaces, reprices and resubmits the transaction", async () => {
    const actionRequests: unknown[] = [];
    life({});
    script.act = async ({ action, txId }) => {
      actionRequests.push([action, txId]);
      return sampleTransaction({ state: "STUCK" });
    };
    script.explain = async () => ({ summary: "it waits", causes: [], help: [], actions: [] });
    const tx = await face().send(intent);
    await tx.cancel(reason);
    await tx.replace({ ...reason, payload: { to: RECIPIENT_EIP55 } });
    await tx.reprice(reason);
    await tx.resubmit(reason);
    expect(actionRequests).toEqual(["cancel", "replace", "reprice", "resubmit"].map((action) => [action, TX]));
    expect(tx.state).toBe("STUCK");
    expect(await tx.explain()).toMatchObject({ summary: "it waits" });
  });

  it("stops waiting at an abort", async () => {
    life({});
    const tx = await face().handle(TX);
    await expect(tx.final({ timeoutMs: 20, pollIntervalMs: 1 })).rejects.toMatchObject({ code: "TIMEOUT" });
    const mine = new Error("enough");
    await expect(tx.mined({ signal: AbortSignal.abort(mine) })).rejects.toBe(mine);
    await expect(tx.states({ timeoutMs: 5_000 }).next()).resolves.toMatchObject({ value: { txId: TX } });
  });
});

/** Sorts members by name: one interface returns them in the order of the object, the other in that of the schema. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, each]) => [name, sorted(each)]),
  );
}
