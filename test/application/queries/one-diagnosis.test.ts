/** One cause is shown as one row with one remedy, on every page and node, from the beginning. */
import { afterEach, describe, expect, it } from "vitest";
import { NodeWatch } from "../../../src/application/loops/stuck-watch.ts";
import { RecentAlerts } from "../../../src/application/queries/node-reports.ts";
import { SignerAway } from "../../../src/ports/signer.ts";
import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { OperatedWorld } from "../../support/operations.ts";
import {
  CHAIN_ID,
  SIGNER,
  SIGNERS,
  TO,
  transfer,
  World,
  type WorldNode,
  type WorldOptions,
} from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world?.close());

async function start(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode();
}

const GWEI = 1_000_000_000n;
const SECOND = 1_000;
const NEVER_STUCK = { stuckAfterMs: 10_000_000, repricing: null } as const;

/** The attention list after the reports of all nodes have arrived. */
async function rows({ node }: WorldNode) {
  await world.settle(node.api.attention());
  await world.clock.advance(6 * SECOND);
  return (await world.settle(node.api.attention())).items;
}

const explained = ({ node }: WorldNode, txId: string) => world.settle(node.api.explain(txId));
const remedies = (actions: readonly { readonly action: string }[]) => actions.map(({ action }) => action);

/** Transactions sent at a price below the base fee, from a signer whose balance is then zero. */
async function poor(entry: WorldNode, count = 1): Promise<readonly string[]> {
  world.holdBlocks();
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await ops.sent(entry));
  world.chain.dropAllTransactions();
  world.chain.setBalance(SIGNER, 0n);
  world.chain.setBaseFee(90n * GWEI);
  world.chain.mine();
  await world.until(() => ids.every((id) => ops.row(id).lastError?.startsWith("insufficientFunds") === true), 600_000);
  return ids;
}

describe("the list of problems and the explanation of a transaction", () => {
  // protects [Everything at once] src/domain/troubles/table.ts, src/domain/troubles/rows.ts, src/application/queries/node-reports.ts, src/application/queries/explain.ts
  it("name the same cause if there are two causes", async () => {
    const entry = await start({ settings: { ...NEVER_STUCK, resubmitIntervalMs: 5_000 } });
    const [txId = ""] = await poor(entry);
    const [row] = await rows(entry);
    const page = await explained(entry, txId);
    expect(page.causes[0]?.code).toBe("INSUFFICIENT_FUNDS");
    expect(page.help[0]?.code).toBe("FUND_SIGNER");
    expect(row).toMatchObject({ code: "INSUFFICIENT_FUNDS", signer: SIGNER });
    expect(row?.sentence).toContain("What helps: send funds to");
    expect(remedies(row?.actions ?? [])).toEqual(remedies(page.actions));
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/domain/troubles/rows.ts, src/application/queries/node-reports.ts, src/application/queries/explain.ts
  it("name the same cause on every node", async () => {
    const entry = await start({ settings: { ...NEVER_STUCK, resubmitIntervalMs: 5_000 } });
    const other = await world.startNode({ signers: SIGNERS.slice(1) });
    const [txId = ""] = await poor(entry);
    const [[own], [theirs]] = [await rows(entry), await rows(other)];
    const page = await explained(other, txId);
    expect(theirs).toMatchObject({ code: "INSUFFICIENT_FUNDS", id: own?.id, since: own?.since });
    expect(theirs?.sentence.split(" What helps")[1]).toBe(own?.sentence.split(" What helps")[1]);
    expect(page.causes[0]?.code).toBe("INSUFFICIENT_FUNDS");
  });

  it("report an unreachable signer on every node", async () => {
    const entry = await start();
    const other = await world.startNode({ signers: SIGNERS.slice(1) });
    entry.signer.sign = () => Promise.reject(new Error("connection refused"));
    const txId = await ops.create(entry);
    await world.clock.advance(15 * SECOND);
    const [here, there] = [await explained(entry, txId), await explained(other, txId)];
    expect(here.causes[0]?.code).toBe("SIGNER_AWAY");
    expect(there.causes[0]).toMatchObject({ code: "SIGNER_AWAY", since: here.causes[0]?.since });
    expect(there.help).toEqual(here.help);
  });
});

describe("a cause in the list of problems", () => {
  // protects [Everything at once] src/domain/troubles/table.ts, src/domain/troubles/rows.ts, src/application/queries/node-reports.ts, src/application/queries/explain.ts
  it("is shown as one row for all blocked transactions of a signer", async () => {
    const entry = await start({ settings: { ...NEVER_STUCK, resubmitIntervalMs: 5_000 } });
    await poor(entry, 7);
    const found = await rows(entry);
    expect(found).toMatchObject([{ code: "INSUFFICIENT_FUNDS", nonce: 0, waiting: 6 }]);
  });

  it("is shown as one row for all signers of an unreachable chain", async () => {
    const entry = await start({ settings: { stuckAfterMs: 10_000, repricing: null } });
    world.chain.setBaseFee(90n * GWEI);
    for (const signer of SIGNERS) await ops.create(entry, { signer });
    await world.until(() => world.rows().every(({ state }) => state === "STUCK"), 600_000);
    entry.faults.inject({ kind: "unavailable" });
    await world.clock.advance(15 * SECOND);
    const found = await rows(entry);
    expect(found.map(({ code, chainId }) => [code, chainId])).toEqual([["CHAIN_UNREACHABLE", CHAIN_ID]]);
    expect(found[0]?.waiting).toBe(SIGNERS.length);
  });
});

describe("readiness", () => {
  it.each([
    ["no endpoint answers", false, (entry: WorldNode) => entry.faults.inject({ kind: "unavailable" })],
    [
      "endpoints fail beside one that answers",
      true,
      (entry: WorldNode) => {
        const failing = (host: string) => ({ url: `https://${host}/SECRET`, status: "failing", behind: null });
        Object.assign(entry.rpc, { health: () => [failing("one.example"), failing("two.example")] });
      },
    ],
    ["no block comes", true, () => world.holdBlocks()],
    // protects [Everything at once] src/domain/troubles/table.ts, src/application/queries/readiness.ts
  ])("names the codes that the list of problems shows if %s", async (_, ready, cause) => {
    const entry = await start();
    await world.clock.advance(80 * SECOND);
    cause(entry);
    await world.clock.advance(120 * SECOND);
    const listed = [...new Set((await rows(entry)).map(({ code }) => code))];
    const answer = await world.settle(entry.node.api.readiness());
    expect(listed).not.toEqual([]);
    expect(answer).toMatchObject({ ready, chains: [{ reachable: ready, troubles: listed }] });
    expect(JSON.stringify(answer)).not.toMatch(/SECRET|example/);
  });
});

describe("the start of a problem in a diagnosis", () => {
  const STUCK_SOON = { stuckAfterMs: 20_000, repricing: null, resubmitIntervalMs: 2_000 } as const;

  async function stuck(entry: WorldNode): Promise<Date> {
    world.chain.setBaseFee(90n * GWEI);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "STUCK", 600_000);
    const stick = ops.row(txId).history.find(({ event }) => event === "stick");
    if (stick === undefined) throw new Error("it is not stuck");
    return stick.firstAt;
  }

  // protects [Everything at once] src/domain/troubles/table.ts, src/domain/troubles/rows.ts, src/application/queries/node-reports.ts, src/application/queries/explain.ts
  it("does not change when a stuck transaction is sent again", async () => {
    const entry = await start({ settings: STUCK_SOON });
    const since = await stuck(entry);
    const sends = world.rows()[0]?.submitAttempts ?? 0;
    await world.until(() => (world.rows()[0]?.submitAttempts ?? 0) > sends + 1, 600_000);
    expect(await rows(entry)).toMatchObject([{ since }]);
  });

  // protects [Everything at once] src/domain/troubles/table.ts, src/domain/troubles/rows.ts, src/application/queries/node-reports.ts, src/application/queries/explain.ts
  it("survives a restart and a takeover by another node", async () => {
    const entry = await start({ settings: { ...NEVER_STUCK, resubmitIntervalMs: 5_000 } });
    await poor(entry);
    const [first] = await rows(entry);
    await world.clock.advance(20 * SECOND);
    world.crash(entry);
    const next = await world.startNode();
    await world.until(() => world.ownerOf(SIGNER) === "node-2", 120_000);
    await world.clock.advance(60 * SECOND);
    const found = (await rows(next)).filter(({ code }) => code === "INSUFFICIENT_FUNDS");
    expect(found).toMatchObject([{ id: first?.id, since: first?.since }]);
  });

  const of = async (entry: WorldNode, code: string) => (await rows(entry)).filter((row) => row.code === code);

  const REFUSED = new Error("connection refused");
  const LIE = new SignerAway("it signed another receiver", { lies: true });

  /** Starts a node whose signer fails `afterMs` after it was requested to sign. */
  async function withoutSigner(afterMs = 0, failure: Error = REFUSED): Promise<WorldNode> {
    const entry = world.addNode({ node: { drainTimeoutMs: 30 * SECOND } });
    entry.signer.sign = async () => {
      if (afterMs > 0) await world.clock.sleep(afterMs);
      throw failure;
    };
    await world.settle(entry.node.start());
    return entry;
  }

  /** Starts the first node, with a transaction that its signer does not sign, and returns the row about that. */
  async function unsigned(failure: Error = REFUSED) {
    world = new World();
    ops = new OperatedWorld(world);
    const entry = await withoutSigner(0, failure);
    const txId = await ops.create(entry);
    await world.clock.advance(15 * SECOND);
    const [first] = await of(entry, failure === LIE ? "SIGNER_LIES" : "SIGNER_AWAY");
    return { entry, txId, id: first?.id, since: first?.since ?? new Date(0) };
  }

  const moved = () => world.until(() => world.ownerOf(SIGNER) === "node-2", 400 * SECOND);

  // protects [Everything at once] src/domain/troubles/rows.ts, src/application/queries/node-reports.ts
  it("survives that a node that shuts down hands its lanes over", async () => {
    const { entry, id, since } = await unsigned();
    const next = await withoutSigner(20 * SECOND);
    await world.settle(entry.node.close());
    await moved();
    await world.clock.advance(60 * SECOND);
    expect(await of(next, "SIGNER_AWAY")).toMatchObject([{ id, since }]);
  });

  it.each([
    ["SIGNER_AWAY", REFUSED],
    ["SIGNER_LIES", LIE],
    // protects [Everything at once] src/domain/troubles/rows.ts, src/application/queries/node-reports.ts
  ] as const)("survives that another live node gets the lane (%s)", async (code, failure) => {
    const { entry, txId, id, since } = await unsigned(failure);
    const next = await withoutSigner(20 * SECOND, failure);
    await moved();
    await world.clock.advance(6 * SECOND);
    expect(await of(entry, code)).toEqual([]);
    await world.clock.advance(20 * SECOND);
    await world.clock.advance(10 * SECOND);
    for (const each of [entry, next]) {
      expect(await of(each, code)).toMatchObject([{ id, since }]);
      expect((await explained(each, txId)).causes[0]).toMatchObject({ code, since });
    }
  });

  it("survives a crash of a node whose signer answers falsely, with the same code on both pages", async () => {
    const { entry, txId, id, since } = await unsigned(LIE);
    const [row] = await of(entry, "SIGNER_LIES");
    const { causes, help } = await explained(entry, txId);
    expect(causes[0]).toMatchObject({ code: "SIGNER_LIES", since });
    expect(row?.sentence.toLowerCase()).toContain(causes[0]?.text.toLowerCase());
    expect(help[0]?.code).toBe("CHECK_SIGNER");
    world.crash(entry);
    const next = await withoutSigner(0, LIE);
    await moved();
    await world.clock.advance(60 * SECOND);
    expect(await of(next, "SIGNER_LIES")).toMatchObject([{ id, since }]);
    expect((await explained(next, txId)).causes[0]).toMatchObject({ code: "SIGNER_LIES", since });
  });

  it("is a new one if a signer that did not answer begins to answer falsely", async () => {
    const { entry, txId, since } = await unsigned();
    const laterMs = world.clock.now().getTime();
    entry.signer.sign = () => Promise.reject(LIE);
    await world.clock.advance(60 * SECOND);
    const [row] = await of(entry, "SIGNER_LIES");
    expect(since.getTime()).toBeLessThan(laterMs);
    expect(row?.since?.getTime()).toBeGreaterThanOrEqual(laterMs);
    expect((await explained(entry, txId)).causes[0]).toMatchObject({ code: "SIGNER_LIES", since: row?.since });
    expect(await of(entry, "SIGNER_AWAY")).toEqual([]);
  });

  it("is later if the next owner had no such problem for a while", async () => {
    const { since } = await unsigned();
    const next = await world.startNode();
    await moved();
    await world.clock.advance(120 * SECOND);
    const laterMs = world.clock.now().getTime();
    next.signer.sign = () => Promise.reject(new Error("connection refused"));
    await ops.create(next);
    await world.clock.advance(15 * SECOND);
    const [row] = await of(next, "SIGNER_AWAY");
    expect(since.getTime()).toBeLessThan(laterMs);
    expect(row?.since?.getTime()).toBeGreaterThanOrEqual(laterMs);
  });

  // protects [Everything at once] src/domain/troubles/rows.ts, src/application/queries/node-reports.ts
  it("survives a restart of the only node while no endpoint answers", async () => {
    const entry = await start();
    world.chain.setBaseFee(90n * GWEI);
    const txId = await ops.create(entry);
    entry.faults.inject({ kind: "unavailable" });
    await world.clock.advance(15 * SECOND);
    const [first] = await of(entry, "CHAIN_UNREACHABLE");
    await world.settle(entry.node.close());
    await world.clock.advance(30 * SECOND);
    const next = world.addNode();
    next.faults.inject({ kind: "unavailable" });
    await world.settle(next.node.start());
    await world.clock.advance(15 * SECOND);
    expect(await of(next, "CHAIN_UNREACHABLE")).toMatchObject([{ id: first?.id, since: first?.since }]);
    const { causes } = await explained(next, txId);
    expect(causes.find(({ code }) => code === "CHAIN_UNREACHABLE")).toMatchObject({ since: first?.since });
  });

  it("is the first look for a problem that is only looked for now and then", async () => {
    const entry = await start({ settings: { alertLowBalanceWei: 10n ** 30n } });
    const startedMs = world.clock.now().getTime();
    await ops.settled(await ops.create(entry));
    const [first] = await of(entry, "LOW_BALANCE");
    await world.clock.advance(120 * SECOND);
    const [later] = await of(entry, "LOW_BALANCE");
    expect(first?.since?.getTime()).toBeGreaterThanOrEqual(startedMs);
    expect(later?.since).toEqual(first?.since);
  });

  it("never becomes a later block while the price stays too low", async () => {
    const entry = await start({ settings: NEVER_STUCK });
    world.holdBlocks();
    const txId = await ops.sent(entry);
    world.chain.setBaseFee(90n * GWEI);
    const sinceBlock = async (blocks: number) => {
      for (let n = 0; n < blocks; n++) world.chain.mine();
      await world.clock.advance(SECOND);
      const { causes } = await explained(entry, txId);
      return causes.find(({ code }) => code === "FEE_BELOW_BASE_FEE")?.data?.sinceBlock;
    };
    const first = await sinceBlock(3);
    expect(first).toEqual(expect.any(Number));
    expect(await sinceBlock(5)).toBe(first);
    expect([first, null]).toContain(await sinceBlock(60));
  });
});

describe("the numbers in a diagnosis", () => {
  it("come from the latest observation, not from the start of the problem", async () => {
    const clock = createManualClock();
    const alerts = new RecentAlerts(clock);
    const watch = new NodeWatch({ clock, telemetry: { emit: (event) => alerts.observe(event) } });
    const tx = { lane: { chainId: CHAIN_ID, signer: SIGNER }, txId: "t", nonce: 1, txHash: null };
    const repeat: TelemetryEvent = {
      ...{ type: "submit.answered", ...tx, answer: "accepted", detail: null, first: false, sinceCreatedMs: null },
    };
    const since = clock.now();
    for (let minute = 0; minute < 11; minute++) {
      for (let n = 0; n < 60; n++) watch.telemetry.emit(repeat);
      watch.look(new Map(), { onChain: () => [] }, 0);
      if (minute < 10) await clock.advance(60_000);
    }
    expect(alerts.shown()).toMatchObject([
      { code: "RESUBMIT_SURGE", since, asOf: clock.now(), sentence: expect.stringMatching(/^300 of 300 /) },
    ]);
  });

  it("are reported as unknown if they cannot be read", async () => {
    const entry = await start({ settings: { stuckAfterMs: 10_000, repricing: null } });
    world.chain.setBaseFee(90n * GWEI);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "STUCK", 600_000);
    entry.rpc.balance = () => Promise.reject(new Error("no answer"));
    const { summary } = await explained(entry, txId);
    expect(summary).toContain("Not known now: the balance of the signer.");
  });

  it("are, for the alert PENDING_OLD, an age and not a queue length", async () => {
    const entry = await start({ settings: { alertOldestAgeMs: 5_000 } });
    entry.signer.sign = () => new Promise(() => undefined);
    const { txId } = await world.settle(entry.node.api.create(transfer()));
    await world.clock.advance(20 * SECOND);
    const row = (await rows(entry)).find(({ code }) => code === "PENDING_OLD");
    expect(row).toMatchObject({ signer: SIGNER, since: ops.row(txId).createdAt });
    expect(row?.sentence).toMatch(/oldest transaction .* not final/);
  });
});

describe("a diagnosis after an operator's action", () => {
  it("says who requested the action and when", async () => {
    const entry = await start({ settings: { stuckAfterMs: 10_000, repricing: null } });
    world.chain.setBaseFee(90n * GWEI);
    const txId = await ops.create(entry, { payload: { to: TO, value: "1", gas: 21_000, ...price(20n) } });
    await world.until(() => ops.row(txId).state === "STUCK", 600_000);
    await ops.act(entry, "reprice", {
      txId,
      request: { maxFeePerGas: `${30n * GWEI}`, maxPriorityFeePerGas: "2000000000" },
    });
    await world.clock.advance(3 * SECOND);
    const { summary } = await explained(entry, txId);
    expect(summary).toMatch(/ Asked 3 s ago by operator:ops \(reprice\), waits for a block\.$/);
  });
});

function price(gwei: bigint) {
  return { maxFeePerGas: `${gwei * GWEI}`, maxPriorityFeePerGas: `${GWEI}` };
}
