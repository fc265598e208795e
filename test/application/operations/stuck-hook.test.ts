import { afterEach, describe, expect, it } from "vitest";
import type { Address } from "../../../src/domain/lane.ts";
import type { UnsignedTransaction } from "../../../src/domain/transaction/transaction.ts";
import type { StuckContext, StuckDecision } from "../../../src/ports/stuck-hook.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { checkInvariants } from "../../support/invariants.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
let asked: StuckContext[];
afterEach(() => world.close());

type Answer = unknown | ((context: StuckContext) => unknown);

function hookOf(answer: Answer) {
  return {
    decide: (context: StuckContext): StuckDecision => {
      asked.push(context);
      return (typeof answer === "function" ? answer(context) : answer) as StuckDecision;
    },
  };
}

async function start(answer: Answer, options: WorldOptions = {}): Promise<WorldNode> {
  world = new World({ ...options, settings: { alertHeadAgeMs: 5_000, repricing: null, ...options.settings } });
  ops = new OperatedWorld(world);
  asked = [];
  return world.startNode({ stuckHook: hookOf(answer) });
}

/**
 * Creates transactions that Fencepost accepts and that nodes then refuse, because their gas exceeds the block's limit.
 */
async function refusedByNodes(node: WorldNode, count: number): Promise<void> {
  await ops.lane(node, "suspend");
  for (let n = 0; n < count; n++) await ops.create(node);
  world.chain.setBlockGasLimit(20_000n);
  await ops.lane(node, "resume");
}

/** A NOOP decision of the hook in its wire format. */
function noopAnd(afterwards: string, reason: string): unknown {
  return JSON.parse(`{"action":"NOOP","reason":"${reason}","then":"${afterwards}"}`);
}

const rawOf = (nonce: number) => world.rows().find((row) => row.nonce === nonce)?.attempts[0]?.rawTransaction;

function results(node: WorldNode): readonly string[] {
  return node.events.flatMap((event) => (event.type === "stuck.resolution" ? [`${event.action} ${event.result}`] : []));
}

function alerts(node: WorldNode): readonly string[] {
  return node.events.flatMap((event) => (event.type === "alert" ? [event.code] : []));
}

describe("the hook for a stuck transaction", () => {
  // protects [The hook] src/application/operations/stuck-hook.ts
  it("receives the transaction's full context", async () => {
    const decision = { action: "CANCEL", reason: "too old", severity: "ERROR", audit: { ticket: 7 } };
    const node = await start(decision);
    world.holdBlocks();
    const txId = await ops.sent(node, { requestId: "order-1", metadata: { customer: "c-17" } });
    await ops.sent(node);
    await world.until(() => ops.kinds(txId).includes("cancel"));
    expect(asked[0]).toMatchObject({
      trigger: "headAge",
      chainId: 31_337,
      txId,
      requestId: "order-1",
      nonce: 0,
      state: "TRACKING",
      lastError: null,
      lastErrorClass: "accepted",
      submitAttempts: 1,
      queueDepth: 2,
      headOfLine: true,
      metadata: { customer: "c-17" },
    });
    expect(asked[0]?.signer.toLowerCase()).toBe(SIGNER);
    expect(asked[0]?.ageSeconds).toBeGreaterThanOrEqual(5);
    expect(asked[0]?.attempts).toEqual([
      {
        ordinal: 1,
        kind: "initial",
        txHash: ops.row(txId).attempts[0]?.txHash,
        gas: "21000",
        type: "eip1559",
        maxFeePerGas: "20000000000",
        maxPriorityFeePerGas: "1000000000",
        firstSentAt: expect.stringMatching(/^2\d{3}-.*Z$/),
      },
    ]);
    expect(JSON.parse(JSON.stringify(asked[0]))).toEqual(asked[0]);
    const step = ops.row(txId).history.find(({ decision: who }) => who?.actor === "hook");
    expect(step).toMatchObject({ event: "cancel", reason: "too old", nodeId: "node-1", token: 1 });
    expect(step?.decision?.audit).toMatchObject({ ticket: 7, action: "CANCEL", trigger: "headAge" });
    expect(results(node)).toEqual(["CANCEL applied"]);
    expect(node.events.find(({ type }) => type === "stuck.resolution")).toEqual({
      type: "stuck.resolution",
      lane: { chainId: 31_337, signer: SIGNER },
      token: 1,
      txId,
      nonce: 0,
      action: "CANCEL",
      result: "applied",
      reason: "too old",
    });
    expect(alerts(node)).toEqual(expect.arrayContaining(["HEAD_OF_LINE_OLD", "STUCK_HOOK_DECISION"]));
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
  });

  it("is called with the trigger `resubmits` after too many broadcasts", async () => {
    const settings = { resubmitIntervalMs: 1_000, stuckAfterResubmits: 3, alertHeadAgeMs: 10_000_000, repricing: null };
    world = new World({ settings });
    ops = new OperatedWorld(world);
    const seen: StuckContext[] = [];
    const decide = (context: StuckContext): StuckDecision => {
      seen.push(context);
      return { action: "CANCEL", reason: "no block takes it" };
    };
    const node = await world.startNode({ stuckHook: { decide } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => ops.kinds(txId).includes("cancel"));
    expect(seen[0]).toMatchObject({ trigger: "resubmits", submitAttempts: expect.any(Number), headOfLine: true });
    expect(seen[0]?.submitAttempts).toBeGreaterThanOrEqual(4);
  });

  // protects [The hook] src/application/detours/change-payload.ts
  it("causes no second signature if it repeats the same decision", async () => {
    const node = await start({ action: "CANCEL", reason: "too old" });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => results(node).length >= 3, 300_000);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(results(node)).toEqual(["CANCEL applied", "CANCEL repeated", "CANCEL repeated"]);
    world.crash(node);
    const next = await world.startNode({ stuckHook: hookOf({ action: "CANCEL", reason: "too old" }) });
    await world.until(() => results(next).length >= 1, 300_000);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(results(next)[0]).toBe("CANCEL repeated");
    world.releaseBlocks();
    await ops.settled(txId);
    checkInvariants(world);
  });

  it("is called again by the new owner if the node crashes after the decision", async () => {
    const node = await start((): StuckDecision => {
      // The node crashes at this point, after its hook has decided.
      world.crash(node);
      return { action: "CANCEL", reason: "too old" };
    });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => asked.length === 1, 300_000);
    const next = await world.startNode({ stuckHook: hookOf({ action: "CANCEL", reason: "too old" }) });
    await world.until(() => results(next).includes("CANCEL applied"), 300_000);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(ops.decisions(txId)).toEqual(["cancel by hook: CANCEL"]);
    world.releaseBlocks();
    await ops.settled(txId);
    checkInvariants(world);
  });

  // protects [The hook] src/application/operations/stuck-hook.ts, src/application/detours/another-attempt.ts
  it("causes no signature if it decides after the lease was lost", async () => {
    let answer: (decision: StuckDecision) => void = () => undefined;
    const node = await start(
      () =>
        new Promise<StuckDecision>((resolve) => {
          answer = resolve;
        }),
    );
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => asked.length === 1);
    const sign = node.signer.sign.bind(node.signer);
    let signed = 0;
    node.signer.sign = (...work) => {
      signed++;
      return sign(...work);
    };
    node.store.cut();
    await world.startNode({ stuckHook: hookOf({ action: "NOOP", reason: "patience" }) });
    await world.clock.advance(12_000);
    answer({ action: "CANCEL", reason: "too old" });
    await world.until(() => results(node).length > 0);
    expect(results(node)).toEqual(["CANCEL movedOn"]);
    await world.clock.advance(30_000);
    expect({ signed, kinds: ops.kinds(txId) }).toEqual({ signed: 0, kinds: ["initial"] });
  });

  // protects [The hook] src/application/detours/change-payload.ts
  it("may decide to REPLACE the transaction", async () => {
    const other = `0x${"c".repeat(40)}`;
    const node = await start({ action: "REPLACE", reason: "r", payload: { to: other, value: "5", gas: 21_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => results(node).length >= 2, 300_000);
    expect(results(node)).toEqual(["REPLACE applied", "REPLACE repeated"]);
    expect(ops.kinds(txId)).toEqual(["initial", "replace"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED/REPLACED");
    await world.close();
    const second = await start({ action: "REPLACE", reason: "r" });
    world.holdBlocks();
    const again = await ops.sent(second);
    await world.until(() => results(second).length >= 2, 300_000);
    expect(results(second)).toEqual(["REPLACE applied", "REPLACE repeated"]);
    expect(ops.kinds(again)).toEqual(["initial", "reprice"]);
  });

  it("causes no signature if it decides after the transaction was mined", async () => {
    const node = await start(async (): Promise<StuckDecision> => {
      world.chain.mine();
      await world.clock.sleep(2_000);
      return { action: "CANCEL", reason: "too old" };
    });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => results(node).length === 1);
    expect(results(node)).toEqual(["CANCEL refused"]);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(alerts(node)).not.toContain("STUCK_HOOK_FAILED");
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("CONFIRMED");
  });

  // protects [The hook] src/application/operations/stuck-hook.ts
  it("is ignored if an operator cancelled the transaction meanwhile", async () => {
    const node = await start(async ({ txId }: StuckContext): Promise<StuckDecision> => {
      await node.node.api.act({ action: "cancel", txId, request: { reason: "mine" }, actor: "operator:ops" });
      return { action: "REPLACE", reason: "r", payload: { to: TO, value: "5", gas: 21_000 } };
    });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => results(node).length === 1);
    expect(results(node)).toEqual(["REPLACE movedOn"]);
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    expect(ops.decisions(txId)).toEqual(["cancel by operator:ops: cancel"]);
  });

  // protects [The hook] src/application/detours/change-payload.ts
  it("may decide to use the nonce for a PLACEHOLDER", async () => {
    const node = await start({ action: "PLACEHOLDER", reason: "nobody needs it" });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => ops.kinds(txId).includes("placeholder"));
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
  });

  // protects [The hook] src/application/operations/stuck-hook.ts
  it("may decide to sign nothing (NOOP)", async () => {
    const node = await start({ action: "NOOP", reason: "wait" });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => results(node).length >= 3, 300_000);
    expect(ops.decisions(txId)).toEqual(["decide by hook: NOOP"]);
    await world.close();
    const stuck = await start(noopAnd("stuck", "somebody must look"));
    world.holdBlocks();
    const second = await ops.sent(stuck);
    await world.until(() => ops.row(second).state === "STUCK", 300_000);
    expect(world.database.state.completions).toMatchObject([{ txId: second, state: "STUCK", settled: false }]);
    expect(ops.row(second).lastError).toBe("somebody must look");
    await world.close();
    const manual = await start(noopAnd("manual", "mine"));
    world.holdBlocks();
    const third = await ops.sent(manual);
    await world.clock.advance(300_000);
    expect(asked.length).toBe(1);
    await ops.act(manual, "resubmit", { txId: third });
    await world.until(() => asked.length === 2, 300_000);
  });
});

describe("the hook for stuck transactions", () => {
  // protects [The hook] src/application/loops/stuck-watch.ts
  it("is called with a different trigger for each kind of problem", async () => {
    const node = await start({ action: "NOOP", reason: "r" }, { settings: { alertHeadAgeMs: 3_600_000 } });
    world.holdBlocks();
    await refusedByNodes(node, 1);
    await world.until(() => asked.length === 1);
    expect(asked[0]).toMatchObject({ trigger: "rejected", lastErrorClass: "rejected" });
    await world.close();
    const settings = { alertHeadAgeMs: 3_600_000, alertPendingDepth: 2 };
    const deep = await start({ action: "NOOP", reason: "r" }, { settings });
    world.holdBlocks();
    for (let n = 0; n < 3; n++) await ops.sent(deep);
    await world.until(() => asked.length === 1);
    expect(asked[0]).toMatchObject({ trigger: "pendingDepth", nonce: 0, queueDepth: 3 });
    expect(alerts(deep)).toContain("PENDING_DEEP");
    await world.close();
    const spent = await start(
      { action: "NOOP", reason: "r" },
      { settings: { maxAttempts: 1, alertHeadAgeMs: 3_600_000 } },
    );
    world.holdBlocks();
    await ops.sent(spent);
    await world.until(() => asked.length === 1);
    expect(asked[0]).toMatchObject({ trigger: "maxAttempts" });
    await world.close();
    const old = await start(
      { action: "NOOP", reason: "r" },
      { settings: { alertHeadAgeMs: 3_600_000, alertOldestAgeMs: 3_000 } },
    );
    world.holdBlocks();
    await ops.sent(old);
    await world.until(() => asked.length === 1);
    expect(asked[0]).toMatchObject({ trigger: "oldestAge" });
    expect(alerts(old)).toContain("PENDING_OLD");
  });

  // protects [The hook] src/application/loops/stuck-watch.ts
  it("is not called for a transaction on a suspended lane", async () => {
    const node = await start({ action: "CANCEL", reason: "r" }, { settings: { alertOldestAgeMs: 5_000 } });
    world.holdBlocks();
    const txId = await ops.sent(node);
    await ops.lane(node, "suspend");
    await world.clock.advance(60_000);
    expect(asked).toEqual([]);
    expect(alerts(node).filter((code) => code === "PENDING_OLD")).toHaveLength(1);
    expect(ops.kinds(txId)).toEqual(["initial"]);
    await ops.lane(node, "resume");
    await world.until(() => asked.length === 1);
  });

  // protects [The hook] src/application/operations/stuck-hook.ts
  it("is called every half minute for one transaction, whatever it returns", async () => {
    let n = 0;
    const node = await start(() => ({ action: "NOOP", reason: `r ${n++}` }));
    world.holdBlocks();
    await ops.sent(node);
    await world.until(() => asked.length === 1);
    await world.clock.advance(29_000);
    expect(asked).toHaveLength(1);
    await world.clock.advance(60_000);
    expect(asked).toHaveLength(3);
  });

  // protects [The hook] src/application/operations/stuck-hook.ts
  it("is called at most ten times a minute for one lane", async () => {
    const settings = { alertHeadAgeMs: 3_600_000 };
    const node = await start({ action: "NOOP", reason: "r" }, { settings });
    world.holdBlocks();
    await refusedByNodes(node, 15);
    await world.clock.advance(20_000);
    expect(asked.length).toBe(10);
    expect(new Set(asked.map(({ txId }) => txId)).size).toBe(10);
    expect(results(node)).toContain("NOOP limited");
    expect(alerts(node)).not.toContain("STUCK_HOOK_FAILED");
  });
});

describe("a hook for stuck transactions that", () => {
  it.each<[string, Answer]>([
    [
      "throws",
      () => {
        throw new Error("out of order");
      },
    ],
    ["hangs", () => new Promise(() => undefined)],
    ["returns nothing", undefined],
    ["returns text", "CANCEL"],
    ["returns no reason", { action: "CANCEL" }],
    ["returns an unknown action", { action: "EXPLODE", reason: "r" }],
    ["returns a payload for a cancel", { action: "CANCEL", reason: "r", payload: { to: TO } }],
    ["returns unknown members", { action: "CANCEL", reason: "r", nonce: 7 }],
    [
      "returns bytes that are no transaction of this signer",
      { action: "REPLACE", reason: "r", rawTransaction: "0x02c0" },
    ],
    // protects [The hook] src/application/operations/stuck-hook.ts
  ])("%s raises an alert and changes nothing", async (_, answer) => {
    const node = await start(answer);
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => alerts(node).includes("STUCK_HOOK_FAILED"));
    expect(ops.kinds(txId)).toEqual(["initial"]);
    expect(ops.decisions(txId)).toEqual([]);
    expect(results(node)).toHaveLength(1);
    expect(results(node)[0]).toMatch(/failed|refused/);
    // The node continues as if no hook were configured.
    world.releaseBlocks();
    await ops.settled(txId);
    checkInvariants(world);
  });
});

describe("the action resolve", () => {
  it("calls the hook for stuck transactions at once", async () => {
    const node = await start({ action: "CANCEL", reason: "as you wish" });
    world.holdBlocks();
    const txId = await ops.sent(node);
    const view = await ops.act(node, "resolve", { txId });
    expect(view.attempts.map(({ kind }) => kind)).toEqual(["initial", "cancel"]);
    expect(asked[0]?.trigger).toBe("operator");
    const step = ops.row(txId).history.find(({ event }) => event === "cancel");
    expect(step).toMatchObject({ reason: "as you wish" });
    expect(step?.decision).toMatchObject({ actor: "hook", audit: { requestedBy: "operator:ops", request: "because" } });
  });

  it("changes a transaction that waits to be signed before the signature", async () => {
    const node = await start({ action: "CANCEL", reason: "r" });
    await ops.lane(node, "suspend");
    const txId = await ops.create(node);
    await ops.act(node, "resolve", { txId });
    expect(asked[0]).toMatchObject({ state: "ALLOCATED", attempts: [] });
    await ops.lane(node, "resume");
    await ops.settled(txId);
    expect(ops.kinds(txId)).toEqual(["cancel"]);
  });

  it("needs an explicit action if no hook is configured", async () => {
    world = new World();
    ops = new OperatedWorld(world);
    const bare = await world.startNode();
    world.holdBlocks();
    const txId = await ops.sent(bare);
    await expect(ops.act(bare, "resolve", { txId })).rejects.toMatchObject({ code: "CONFLICT" });
    await world.close();
    const node = await start("nonsense");
    world.holdBlocks();
    const other = await ops.sent(node);
    await expect(ops.act(node, "resolve", { txId: other })).rejects.toMatchObject({ code: "UNAVAILABLE" });
  });

  it.each<[string, Answer]>([
    ["bytes for another nonce", () => ({ action: "REPLACE", reason: "r", rawTransaction: rawOf(1) })],
    ["a fee too low to replace the attempt", { action: "CANCEL", reason: "r", fees: { gasPrice: "1" } }],
  ])("returns UNAVAILABLE, not a caller's error, for %s in the hook's response", async (_, answer) => {
    const node = await start(answer);
    world.holdBlocks();
    const txId = await ops.sent(node);
    await ops.sent(node);
    const refused = { code: "UNAVAILABLE", message: expect.stringContaining("the stuck hook made no decision") };
    await expect(ops.act(node, "resolve", { txId })).rejects.toMatchObject(refused);
    expect(ops.kinds(txId)).toEqual(["initial"]);
  });

  it("performs the given action; NOOP makes a STUCK transaction pending again", async () => {
    const node = await start(
      { action: "NOOP", reason: "r" },
      { settings: { stuckAfterMs: 2_000, resubmitIntervalMs: 1_000 } },
    );
    world.holdBlocks();
    const txId = await ops.sent(node);
    await world.until(() => ops.row(txId).state === "STUCK", 300_000);
    await ops.act(node, "resolve", { txId, request: { action: "NOOP" } });
    expect(ops.row(txId).history.some(({ event, decision }) => event === "unstick" && decision !== undefined)).toBe(
      true,
    );
    await ops.act(node, "resolve", { txId, request: { action: "CANCEL" } });
    await ops.act(node, "resolve", { txId, request: { action: "CANCEL" } });
    expect(ops.kinds(txId)).toEqual(["initial", "cancel"]);
    world.releaseBlocks();
    await ops.settled(txId);
    expect(ops.outcome(txId)).toBe("FAILED_FINAL/CANCELLED");
    checkInvariants(world);
  });

  // protects [The hook] src/application/detours/change-payload.ts
  it("accepts externally signed bytes only for the same signer, chain and nonce", async () => {
    const node = await start({ action: "NOOP", reason: "r" });
    world.holdBlocks();
    const first = await ops.sent(node);
    const fees = { type: "eip1559", maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 10n } as const;
    const right = {
      chainId: CHAIN_ID,
      nonce: 0,
      to: TO,
      value: 1n,
      gas: 21_000n,
      accessList: [],
      data: "0x",
      fees,
    } as const;
    const replace = async (signer: Address, wrong: Partial<UnsignedTransaction>) => {
      const [made] = await new FakeSigner(SIGNERS).sign(signer, [{ ...right, ...wrong }]);
      return ops.act(node, "resolve", {
        txId: first,
        request: { action: "REPLACE", rawTransaction: made?.rawTransaction },
      });
    };
    for (const foreign of [
      replace(SIGNER, { nonce: 1 }),
      replace(SIGNER, { chainId: 10 }),
      replace(SIGNERS.at(-1) as Address, {}),
    ]) {
      await expect(foreign).rejects.toMatchObject({
        code: "INVALID_REQUEST",
        message: expect.stringContaining("is not signed for this signer, chain and nonce"),
      });
    }
    expect(ops.kinds(first)).toEqual(["initial"]);
    await replace(SIGNER, {});
    expect(ops.kinds(first)).toEqual(["initial", "replace"]);
  });
});
