import { afterEach, describe, expect, it } from "vitest";
import type { AttentionView } from "../../../src/application/api.ts";
import { AttentionDesk } from "../../../src/application/queries/attention.ts";
import { RecentAlerts } from "../../../src/application/queries/node-reports.ts";
import { ANYBODY, type Limits } from "../../../src/domain/keys/principal.ts";
import type { AlertCode } from "../../../src/domain/troubles/table.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { aPermit, permitPolicy } from "../../support/message-samples.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { forSigner } from "../../support/policies.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

const look = ({ node }: WorldNode, query = {}, limits?: Limits): Promise<AttentionView> =>
  world.settle(node.api.attention(query, limits));
const codes = async (entry: WorldNode) => (await look(entry)).items.map(({ code }) => code);
const SECOND = 1_000;

/** Creates a transaction that is not mined, and others that wait behind it. */
async function stuck(entry: WorldNode, behind = 2): Promise<string> {
  world.chain.setBaseFee(90_000_000_000n);
  const { txId } = await world.settle(entry.node.api.create(transfer()));
  for (let n = 0; n < behind; n++) await world.settle(entry.node.api.create(transfer()));
  await world.until(() => ops.row(txId).state === "STUCK", 600_000);
  return txId;
}

const STUCK_SOON = { stuckAfterMs: 20_000, repricing: null } as const;

describe("the list of problems", () => {
  it("is empty if nothing is wrong, both before and after a transaction", async () => {
    const entry = await start();
    expect(await look(entry)).toMatchObject({ items: [], more: 0 });
    await world.settle(entry.node.api.create(transfer()));
    await world.allSettled(1);
    await world.clock.advance(10 * SECOND);
    expect(await look(entry)).toMatchObject({ items: [], more: 0 });
  });

  it("shows a stuck transaction with the actions that help", async () => {
    const entry = await start({ settings: STUCK_SOON });
    const txId = await stuck(entry);
    const [first] = (await look(entry)).items;
    const { causes, summary } = await world.settle(entry.node.api.explain(txId));
    expect(first).toMatchObject({ id: `tx:${txId}`, severity: "ERROR", txId, nonce: 0, signer: SIGNER, waiting: 2 });
    expect(first?.code).toBe(causes[0]?.code);
    expect(first?.sentence.split(":")[0]).toBe(summary.split(":")[0]);
    expect(first?.sentence).toMatch(/2 \w+ wait behind it/);
    expect(first?.actions.map(({ path }) => path)).toContain(`/api/v1/tx/${txId}/reprice`);
  });

  // protects [Everything at once] src/application/queries/attention.ts
  it("shows a nonce gap and the stuck transaction above the gap as one item", async () => {
    const entry = await start({ settings: { ...STUCK_SOON, expiredReservations: "hole" } });
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: "1s" }));
    const { txId } = await world.settle(entry.node.api.create(transfer()));
    await world.until(() => ops.row(txId).state === "STUCK", 600_000);
    await world.clock.advance(15 * SECOND);
    await look(entry);
    await world.clock.advance(4 * SECOND);
    const { items } = await look(entry);
    expect(items).toMatchObject([
      { code: "HOLE_BELOW", txId, actions: [{ body: { action: "PLACEHOLDER", nonce: 0 } }] },
    ]);
  });

  // protects [Everything at once] src/application/queries/explain.ts
  it("makes no chain request, however often it is read", async () => {
    const entry = await start({ settings: { ...STUCK_SOON, pollIntervalMs: 1_000_000 } });
    const asked: string[] = [];
    const txId = await ops.create(entry);
    await ops.act(entry, "suspend", { txId });
    const { rpc } = entry;
    for (const name of ["balance", "transactionCount", "blocksByNumber", "pooled", "settleReceipts", "head"] as const) {
      const real = (rpc[name] as (...given: readonly unknown[]) => unknown).bind(rpc);
      const noted = (...given: readonly unknown[]) => {
        asked.push(name);
        return real(...given);
      };
      Object.assign(rpc, { [name]: noted });
    }
    for (let n = 0; n < 5; n++) {
      const { items } = await look(entry);
      expect(items).toMatchObject([{ code: "HELD" }]);
      await world.settle(entry.node.api.overview());
      await world.clock.advance(SECOND);
    }
    expect(asked).toEqual([]);
  });

  it("shows suspended lanes, with the operator and the reason", async () => {
    const entry = await start();
    await ops.lane(entry, "suspend");
    expect(await look(entry)).toMatchObject({
      items: [{ code: "LANE_SUSPENDED", severity: "WARNING", sentence: expect.stringContaining("operator:ops: ") }],
    });
  });

  it("shows transactions that await approval", async () => {
    const entry = await start({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    const { txId } = await world.settle(entry.node.api.create(transfer()));
    const { items } = await look(entry);
    expect(items).toMatchObject([{ code: "AWAITING_APPROVAL", txId, nonce: null }]);
    expect(items[0]?.actions.map(({ action }) => action)).toEqual(expect.arrayContaining(["approve", "reject"]));
  });

  // protects [Messages] src/domain/troubles/find.ts
  it("shows signatures that await approval, with domain, asker and rule, until their time is over", async () => {
    const bound = { amount: { field: "value" }, requireApproval: { aboveAmount: "50", expiresAfter: "60s" } };
    const entry = await start({ policies: forSigner(SIGNER, permitPolicy(bound, CHAIN_ID)) });
    const request = { signer: SIGNER, typedData: aPermit(SIGNER, { chainId: CHAIN_ID }) };
    const { signatureId } = await world.settle(entry.node.api.requestSignature(request, "checkout"));
    const { items } = await look(entry);
    expect(items).toMatchObject([
      {
        ...{ code: "AWAITING_APPROVAL", signatureId, signer: SIGNER, chainId: CHAIN_ID, txId: null },
        sentence:
          "A signature of the typed data Permit for USD Coin, asked for by checkout, waits for approval by rule usdc.",
      },
    ]);
    expect(items[0]?.actions.map(({ path }) => path)).toEqual([
      `/api/v1/signatures/${signatureId}/approve`,
      `/api/v1/signatures/${signatureId}/reject`,
    ]);
    await world.clock.advance(61 * SECOND);
    expect(await codes(entry)).toEqual([]);
  });

  it("shows kills above all other items, until they are ended", async () => {
    const entry = await start({ settings: STUCK_SOON });
    await stuck(entry);
    const actionRequest = { signer: null, request: { reason: "stolen?" }, actor: "operator:ada" };
    await world.settle(entry.node.api.kill(actionRequest));
    await world.clock.advance(2 * SECOND);
    expect((await codes(entry))[0]).toBe("KILLED");
    await world.settle(entry.node.api.endKill(actionRequest));
    await world.clock.advance(5 * SECOND);
    await look(entry);
    expect(await codes(entry)).not.toContain("KILLED");
  });

  // protects [Everything at once] src/application/queries/node-reports.ts, src/adapters/postgres/statements/cluster-past.ts
  it("shows on every node that a signer is unavailable", async () => {
    const entry = await start();
    // Start the other node without the signer's key: if it had the key, the lane would move to it.
    const other = await world.startNode({ signers: SIGNERS.slice(1) });
    await world.clock.advance(5 * SECOND);
    entry.signer.sign = () => Promise.reject(new Error("connection refused"));
    await world.settle(entry.node.api.create(transfer()));
    await world.clock.advance(15 * SECOND);
    for (const each of [entry, other]) {
      expect(await look(each)).toMatchObject({
        items: [{ code: "SIGNER_AWAY", signer: SIGNER, nodeId: "node-1" }],
      });
    }
  });

  it("shows a chain that does not respond", async () => {
    const entry = await start();
    entry.faults.inject({ kind: "unavailable" });
    await world.clock.advance(5 * SECOND);
    const unreachable = { code: "CHAIN_UNREACHABLE", severity: "CRITICAL", chainId: CHAIN_ID, since: expect.any(Date) };
    expect(await look(entry)).toMatchObject({ items: [unreachable] });
  });

  it("shows a node whose heartbeat expired, until its lanes are taken over", async () => {
    const entry = await start();
    const other = await world.startNode();
    await world.clock.advance(5 * SECOND);
    const lost = [...world.database.state.instances.values()].find(({ nodeId }) => nodeId === "node-2");
    world.crash(other);
    await world.until(() => (lost?.expiresAt ?? new Date(0)) <= world.clock.now());
    expect(await codes(entry)).toContain("NODE_LOST");
    await world.until(() => lost?.dead === true);
    await world.clock.advance(SECOND);
    expect(await codes(entry), "its lanes are taken, and that it vanished stays").toEqual(["NODE_VANISHED"]);
  });
});

describe("lanes that no live node can own", () => {
  it("are shown in the list of problems with their former node", async () => {
    const entry = await start();
    const other = await world.startNode({ signers: [SIGNERS[1] as typeof SIGNER] });
    world.crash(entry);
    const gone = () => [...world.database.state.instances.values()].find(({ nodeId }) => nodeId === "node-1");
    await world.until(() => gone()?.dead === true);
    await world.clock.advance(5 * SECOND);
    const { items } = await look(other);
    expect(items.filter(({ code }) => code === "NODE_LOST")).toMatchObject([
      {
        code: "NODE_LOST",
        nodeId: "node-1",
        sentence: expect.stringMatching(/is gone, and no living node takes its 2 lanes/),
      },
    ]);
  });
});

describe("a limited API key that reads the list of problems", () => {
  const limits = { signers: new Set([SIGNERS[1] as typeof SIGNER]), chains: null };

  // protects [Everything at once] src/application/queries/attention.ts, src/application/authority.ts
  it("sees no problems of other signers", async () => {
    const entry = await start();
    const suspend = (signer: string) =>
      world.settle(
        entry.node.api.actOnLane({ action: "suspend", signer, request: { reason: "r" }, actor: "operator:a" }),
      );
    await suspend(SIGNER);
    await suspend(SIGNERS[1] as string);
    expect((await look(entry)).items).toHaveLength(2);
    await world.clock.advance(SECOND);
    expect(await look(entry, {}, limits)).toMatchObject({ items: [{ signer: SIGNERS[1] }], more: 0 });
    const actionRequest = { signer: null, request: { reason: "r" }, actor: "operator:ada" };
    await world.settle(entry.node.api.kill(actionRequest));
    await world.clock.advance(2 * SECOND);
    expect((await look(entry, {}, limits)).items.map(({ code }) => code)).toEqual(["KILLED", "LANE_SUSPENDED"]);
  });

  // protects [Everything at once] src/application/queries/attention.ts, src/application/authority.ts
  it("is refused if it names another chain", async () => {
    const entry = await start();
    const key = { ...ANYBODY, name: "shop", chains: new Set([CHAIN_ID]), signers: limits.signers };
    const api = limitedTo(key, entry.node.api);
    expect(await world.refusal(api.attention({ chainId: 1 }))).toMatchObject({ code: "FORBIDDEN" });
    expect(await world.refusal(api.nonceRuler(SIGNER))).toMatchObject({ code: "FORBIDDEN" });
    // The response must not reveal whether the signer exists.
    expect(await world.refusal(api.nonceRuler(`0x${"9".repeat(40)}`))).toMatchObject({ code: "FORBIDDEN" });
    expect(await world.settle(api.search({ q: SIGNER }))).toEqual([]);
  });
});

describe("a long poll of the list of problems", () => {
  it("returns only when the list changes", async () => {
    const entry = await start();
    const { revision } = await look(entry);
    let isAnswered = false;
    const waiting = entry.node.api.attention({ revision, waitMs: 20 * SECOND }).then((view) => {
      isAnswered = true;
      return view;
    });
    await world.clock.advance(5 * SECOND);
    expect(isAnswered).toBe(false);
    await ops.lane(entry, "suspend");
    await world.clock.advance(1_100);
    expect(isAnswered).toBe(true);
    const view = await waiting;
    expect(view.revision).not.toBe(revision);
    expect(view.items).toHaveLength(1);
  });

  it("returns the current list on timeout or abort", async () => {
    const entry = await start();
    const { revision } = await look(entry);
    const before = world.clock.monotonicMs();
    expect((await look(entry, { revision, waitMs: 3 * SECOND })).revision).toBe(revision);
    expect(world.clock.monotonicMs() - before).toBeGreaterThanOrEqual(3 * SECOND);
    const cut = new AbortController();
    const waiting = entry.node.api.attention({ revision, waitMs: 20 * SECOND, signal: cut.signal });
    await world.clock.advance(SECOND);
    cut.abort();
    expect((await world.settle(waiting, 10)).revision).toBe(revision);
  });

  // protects [Everything at once] src/application/chain/answers.ts
  it("shares one database read per second with all other long polls", async () => {
    const entry = await start();
    const { revision } = await look(entry);
    let looks = 0;
    const real = entry.store.troubles.bind(entry.store);
    entry.store.troubles = (limit) => {
      looks++;
      return real(limit);
    };
    await world.clock.advance(10 * SECOND);
    expect(looks).toBe(0);
    const waiting = Array.from({ length: 50 }, () => entry.node.api.attention({ revision, waitMs: 5 * SECOND }));
    await world.settle(Promise.all(waiting));
    expect(looks).toBeGreaterThanOrEqual(4);
    expect(looks).toBeLessThanOrEqual(6);
  });

  // protects [Everything at once] src/application/queries/attention.ts
  it("does not return if only an age in a sentence changes", async () => {
    const entry = await start({ settings: STUCK_SOON });
    await stuck(entry, 0);
    await look(entry);
    await world.clock.advance(SECOND);
    const { revision } = await look(entry);
    const later = await look(entry, { revision, waitMs: 25 * SECOND });
    expect(later.revision).toBe(revision);
  });
});

describe("alerts in the list of problems", () => {
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  const raised = (code: AlertCode, message = "two blocks were replaced") =>
    ({ type: "alert", severity: "CRITICAL", code, message, lane }) as const;
  const begin = () => {
    world = new World();
    const clock = createManualClock();
    return { clock, alerts: new RecentAlerts(clock) };
  };

  it("disappear a quarter of an hour after a single event", async () => {
    const { clock, alerts } = begin();
    alerts.observe(raised("DEEP_REORG"));
    alerts.observe(raised("TX_STUCK"));
    await clock.advance(10 * 60_000);
    alerts.observe(raised("DEEP_REORG"));
    const lastSaid = clock.now();
    await clock.advance(14 * 60_000);
    expect(alerts.shown()).toMatchObject([
      { code: "DEEP_REORG", signer: SIGNER, sentence: "Two blocks were replaced.", over: true, since: lastSaid },
    ]);
    await clock.advance(2 * 60_000);
    expect(alerts.shown()).toEqual([]);
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  it("stay until they are resolved if they report a lasting condition", async () => {
    const { clock, alerts } = begin();
    const since = clock.now();
    alerts.observe(raised("RECONCILIATION_FAILED"));
    await clock.advance(3 * 60 * 60_000);
    alerts.observe(raised("RECONCILIATION_FAILED", "worse"));
    expect(alerts.shown()).toMatchObject([{ code: "RECONCILIATION_FAILED", over: false, since, sentence: "Worse." }]);
    alerts.observe({ type: "alert.resolved", code: "RECONCILIATION_FAILED", message: "over", lane });
    expect(alerts.shown()).toEqual([]);
  });

  // protects [Everything at once] src/application/queries/node-reports.ts
  it("use bounded memory", () => {
    const { alerts } = begin();
    alerts.observe(raised("RECONCILIATION_FAILED"));
    for (let n = 0; n < 1_000; n++) alerts.observe({ ...raised("NONCE_GIVEN_UP"), txId: `tx-${n}` });
    const shown = alerts.shown();
    expect(shown).toHaveLength(201);
    expect(shown[0]?.code).toBe("RECONCILIATION_FAILED");
    expect(shown[1]?.txId).toBe("tx-999");
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/node-reports.ts, src/application/queries/node-reports.ts, src/application/queries/attention.ts
  it("are listed as past if they only report single events", async () => {
    const entry = await start();
    const alerts = new RecentAlerts(world.clock);
    const findings = async () => alerts.shown();
    const desk = new AttentionDesk({
      clock: world.clock,
      store: entry.store,
      findings,
      explain: () => Promise.reject(new Error("no")),
    });
    alerts.observe(raised("DEEP_REORG"));
    await world.clock.advance(SECOND);
    alerts.observe(raised("NONCE_GIVEN_UP"));
    const view = await world.settle(desk.view());
    expect(view).toMatchObject({ items: [], more: 0, past: [{ code: "NONCE_GIVEN_UP" }, { code: "DEEP_REORG" }] });
    // API keys limited to some signers do not see the items of other signers.
    const elsewhere: Limits = { signers: new Set([SIGNERS[1] as typeof SIGNER]), chains: null };
    expect(await world.settle(desk.view({}, elsewhere))).toMatchObject({ items: [], past: [] });
    await world.clock.advance(2 * SECOND);
    alerts.observe(raised("DEEP_REORG"));
    expect((await world.settle(desk.view())).revision).not.toBe(view.revision);
  });
});
