import { afterEach, describe, expect, it } from "vitest";
import type { Hash } from "../../../src/domain/lane.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import type { Explanation } from "../../../src/domain/troubles/situation.ts";
import type { CauseCode } from "../../../src/domain/troubles/table.ts";
import { SIGNER, TO, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
afterEach(() => world.close());

interface Answer {
  readonly explanation: Explanation;
  readonly codes: readonly CauseCode[];
  readonly helps: readonly string[];
}

async function open(options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  return world.startNode();
}

async function create({ node }: WorldNode, payload: Readonly<Record<string, unknown>> = {}): Promise<string> {
  const request = transfer();
  const merged = { ...request, payload: { ...(request.payload as object), ...payload } };
  return (await world.settle(node.api.create(merged))).txId;
}

async function ask({ node }: WorldNode, txId: string): Promise<Answer> {
  const explanation = await world.settle(node.api.explain(txId));
  return {
    explanation,
    codes: explanation.causes.map(({ code }) => code),
    helps: explanation.help.map(({ code }) => code),
  };
}

function row(txId: string) {
  return world.rows().find((each) => each.txId === txId);
}

describe("the explanation of a final transaction", () => {
  it("says CONFIRMED with the block", async () => {
    const entry = await open();
    const txId = await create(entry);
    await world.allSettled(1);
    const { explanation, codes } = await ask(entry, txId);
    expect(codes).toEqual(["CONFIRMED"]);
    expect(explanation.help).toEqual([]);
    expect(explanation.summary).toContain(`block ${row(txId)?.receipt?.blockNumber}`);
  });

  it("says REVERTED if the mined transaction failed", async () => {
    const entry = await open();
    world.chain.revertMined(() => true);
    const txId = await create(entry);
    await world.allSettled(1);
    expect(await ask(entry, txId)).toMatchObject({ codes: ["REVERTED"], helps: ["SEND_ANEW"] });
  });
});

describe("the explanation of a mined transaction", () => {
  it("says WAITING_FOR_CONFIRMATIONS with the current and the required number", async () => {
    const entry = await open({ settings: { confirmations: 50 } });
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "MINED");
    const { explanation, codes } = await ask(entry, txId);
    expect(codes).toEqual(["WAITING_FOR_CONFIRMATIONS"]);
    expect(explanation.causes[0]?.data).toMatchObject({ needed: 50 });
    expect(explanation.help.map(({ code }) => code)).toEqual(["WAIT"]);
  });

  it("says WAITING_FOR_FINALITY_TAG if finality is decided by the chain's tag", async () => {
    const entry = await open({
      settings: { finality: "finalized" },
      chain: { tagDepths: { safe: 60, finalized: 90 } },
    });
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "MINED");
    expect((await ask(entry, txId)).codes).toEqual(["WAITING_FOR_FINALITY_TAG"]);
  });

  it("says REORGED if the block left the chain", async () => {
    const entry = await open({ settings: { confirmations: 10 } });
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "MINED");
    world.holdBlocks();
    world.chain.reorg(4, { drop: "all", keepInPool: false });
    await world.until(() => row(txId)?.receipt === null);
    const { codes } = await ask(entry, txId);
    expect(codes).toContain("REORGED");
  });
});

describe("the explanation of a pending transaction", () => {
  it("says WAITING_FOR_BLOCK if nothing is wrong", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    const { explanation, codes, helps } = await ask(entry, txId);
    expect({ codes, helps }).toEqual({ codes: ["WAITING_FOR_BLOCK"], helps: ["WAIT"] });
    expect(explanation.summary).toMatch(/node node-1 acts for it, its lease ends in \d+ s/);
  });

  it("says WAITING_BEHIND with the transaction that must be mined first", async () => {
    const entry = await open();
    world.holdBlocks();
    const first = await create(entry);
    const second = await create(entry);
    await world.until(() => row(second)?.subState === "BROADCAST");
    const { explanation, codes, helps } = await ask(entry, second);
    expect(codes).toEqual(["WAITING_BEHIND"]);
    expect(helps).toEqual(["WAIT"]);
    expect(explanation.blockedBy).toEqual({ txId: first, nonce: row(first)?.nonce });
  });

  it("says WAITING_FOR_WINDOW if the lane's in-flight window is full", async () => {
    const entry = await open({ settings: { inFlightWindow: 2 } });
    world.holdBlocks();
    await create(entry);
    await create(entry);
    const third = await create(entry);
    await world.clock.advance(1_000);
    expect(row(third)?.state).toBe("ALLOCATED");
    expect(await ask(entry, third)).toMatchObject({
      codes: ["WAITING_BEHIND", "WAITING_FOR_WINDOW"],
      explanation: { blockedBy: { nonce: 0 } },
    });
  });

  it("says LANE_SUSPENDED with the way to resume the lane", async () => {
    const entry = await open();
    await create(entry);
    await world.allSettled(1);
    const lane = [...world.database.state.lanes.values()].find((each) => each.lane.signer === SIGNER);
    if (lane !== undefined) lane.suspendedBy = "OPERATOR";
    world.holdBlocks();
    const txId = await create(entry);
    expect(await ask(entry, txId)).toMatchObject({ helps: expect.arrayContaining(["RESUME_LANE"]) });
    expect((await ask(entry, txId)).codes[0]).toBe("LANE_SUSPENDED");
  });

  // protects [Explained, and said aloud] src/domain/troubles/obstacles.ts, src/application/queries/explain.ts
  it("says FEE_BELOW_BASE_FEE with the transaction's fee and the base fee", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    world.chain.setBaseFee(30_000_000_000n);
    world.chain.mine(3);
    const dear = world.chain.head.number - 2;
    await world.clock.advance(1_000);
    const { explanation, codes, helps } = await ask(entry, txId);
    expect(codes).toContain("FEE_BELOW_BASE_FEE");
    expect(helps).toEqual(expect.arrayContaining(["REPRICE", "CANCEL"]));
    const cause = explanation.causes.find(({ code }) => code === "FEE_BELOW_BASE_FEE");
    expect(cause?.data).toMatchObject({ feeCap: "20000000000", sinceBlock: dear });
    expect(cause?.text).toContain("20 gwei");
  });

  it("says INSUFFICIENT_FUNDS with the missing amount", async () => {
    const entry = await open();
    const unlock = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const txId = await create(entry, { value: "1000000000000000000" });
    await world.until(() => row(txId)?.state === "TRACKING");
    world.chain.setBalance(SIGNER, 10n ** 17n);
    unlock();
    await world.until(() => row(txId)?.lastError?.startsWith("insufficientFunds") === true);
    const { explanation, codes, helps } = await ask(entry, txId);
    expect(codes).toContain("INSUFFICIENT_FUNDS");
    expect(helps).toContain("FUND_SIGNER");
    const missing = 10n ** 18n + 21_000n * 20_000_000_000n - 10n ** 17n;
    expect(explanation.causes.find(({ code }) => code === "INSUFFICIENT_FUNDS")?.data).toMatchObject({
      missing: `${missing}`,
    });
  });

  it("says NODE_REFUSED with the chain node's message", async () => {
    const entry = await open();
    const unlock = entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const txId = await create(entry, { gas: 100_000 });
    await world.until(() => row(txId)?.state === "TRACKING");
    world.chain.setBlockGasLimit(50_000n);
    unlock();
    await world.until(() => row(txId)?.lastError?.startsWith("rejected") === true);
    const { explanation, codes, helps } = await ask(entry, txId);
    expect(codes).toContain("NODE_REFUSED");
    expect(helps).toEqual(expect.arrayContaining(["REPLACE", "CANCEL"]));
    expect(explanation.causes.find(({ code }) => code === "NODE_REFUSED")?.text).toContain("gas limit");
  });

  it("says UNDERPRICED if the chain node refused the fee", async () => {
    const entry = await open({ chain: { minimumTip: 2_000_000_000n }, settings: { resubmitIntervalMs: null } });
    const txId = await create(entry);
    await world.until(() => row(txId)?.lastError?.startsWith("underpriced") === true);
    expect((await ask(entry, txId)).codes).toContain("UNDERPRICED");
  });

  it("says NODE_DID_NOT_ANSWER if no endpoint responds to the broadcast", async () => {
    const entry = await open();
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const txId = await create(entry);
    await world.until(() => row(txId)?.lastError !== null);
    expect(await ask(entry, txId)).toMatchObject({ helps: expect.arrayContaining(["CHECK_RPC"]) });
    expect((await ask(entry, txId)).codes).toContain("NODE_DID_NOT_ANSWER");
  });

  it("says NOT_IN_POOL if the chain node dropped the transaction", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    world.chain.dropTransaction(row(txId)?.attempts[0]?.txHash as Hash);
    const { codes, helps } = await ask(entry, txId);
    expect(codes).toEqual(["NOT_IN_POOL"]);
    expect(helps).toEqual(["RESUBMIT"]);
  });

  it("says NONCE_CONSUMED if the nonce is used and no attempt is mined", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    const asked = ask(entry, txId);
    world.chain.mineForeign(SIGNER);
    expect((await asked).codes).toContain("NONCE_CONSUMED");
  });

  it("says CHAIN_UNREACHABLE with the duration of the outage", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    entry.faults.inject({ kind: "unavailable" });
    await world.clock.advance(125_000);
    const { explanation, codes, helps } = await ask(entry, txId);
    expect(codes[0]).toBe("CHAIN_UNREACHABLE");
    expect(helps).toContain("CHECK_RPC");
    expect(explanation.causes[0]?.text).toContain("for 2 min");
  });
});

describe("the explanation of a transaction", () => {
  it("says CHAIN_STALLED while the attention list does", async () => {
    const entry = await open();
    await world.clock.advance(60_000);
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    expect((await ask(entry, txId)).codes).toEqual(["WAITING_FOR_BLOCK"]);
    await world.clock.advance(150_000);
    const { explanation, codes, helps } = await ask(entry, txId);
    expect(codes[0]).toBe("CHAIN_STALLED");
    expect(helps).toEqual(["CHECK_RPC"]);
    expect(explanation.causes[0]?.text).toMatch(/^the chain stands still: no block has come after \d+ for 2 min$/);
    expect((await world.settle(entry.node.api.attention())).items.map(({ code }) => code)).toEqual(["CHAIN_STALLED"]);
  });

  it("says OWNER_SILENT or LANE_UNOWNED after a crash of the lane's owner", async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await create(entry);
    await world.until(() => row(txId)?.subState === "BROADCAST");
    const reader = world.addNode({ signers: [TO] });
    await world.settle(reader.node.start());
    world.crash(entry);
    const lane = [...world.database.state.lanes.values()].find((each) => each.lane.signer === SIGNER);
    const instance = world.database.state.instances.get(lane?.owner ?? "");
    await world.until(() => instance !== undefined && instance.expiresAt <= world.clock.now());
    const { codes } = await ask(reader, txId);
    expect(["OWNER_SILENT", "LANE_UNOWNED"]).toContain(codes[0]);
    await world.clock.advance(30_000);
    expect(await ask(reader, txId)).toMatchObject({ helps: expect.arrayContaining(["START_A_NODE"]) });
    expect((await ask(reader, txId)).codes[0]).toBe("LANE_UNOWNED");
  });

  it("says why there is no nonce yet", async () => {
    const entry = await open();
    entry.faults.inject({ kind: "unavailable" });
    const intent = { lane: { chainId: 31_337, signer: SIGNER }, txId: "0190f5c2-0000-7000-8000-00000000abcd" };
    world.database.insertIntake(anIntake(intent));
    expect((await ask(entry, intent.txId)).codes).toEqual(["WAITING_FOR_ALLOCATION"]);
    await world.clock.advance(1_000);
    expect((await ask(entry, intent.txId)).codes).toEqual(["CHAIN_UNREACHABLE"]);
  });

  it("returns NOT_FOUND if the transaction is unknown", async () => {
    const entry = await open();
    await expect(world.settle(entry.node.api.explain("0190f5c2-0000-7000-8000-000000000000"))).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });
});

function anIntake({ lane, txId }: Pick<Intent, "lane" | "txId">): Intent {
  const fingerprint = `0x${"00".repeat(32)}` as const;
  return {
    txId,
    lane,
    requestId: null,
    owner: null,
    payload: { to: TO, data: "0x", value: 1n },
    fingerprint,
    metadata: null,
  };
}
