/**
 * Tests the causes that explain.test.ts does not cover, each with a real occurrence. Together the two files cover every
 * cause.
 */
import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { explanationOf } from "../../../src/application/queries/explain.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Intent } from "../../../src/domain/transaction/transaction.ts";
import type { Explanation } from "../../../src/domain/troubles/situation.ts";
import { CAUSE_CODES, type CauseCode } from "../../../src/domain/troubles/table.ts";
import { ChainUnavailable } from "../../../src/ports/chain.ts";
import { SignerAway } from "../../../src/ports/signer.ts";
import { SimulatedChain } from "../../doubles/simulated-chain/core.ts";
import { ROOMY_POOL } from "../../doubles/simulated-chain/pool.ts";
import { senderFromFakeSignature } from "../../doubles/simulated-chain/sender.ts";
import { take } from "../../support/explained-worlds.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { forSigner } from "../../support/policies.ts";
import {
  CHAIN_ID,
  type NodeOptions,
  SIGNER,
  TO,
  transfer,
  World,
  type WorldNode,
  type WorldOptions,
} from "../../support/world.ts";

const GWEI = 1_000_000_000n;
const NODE_SIGNER: Address = `0x${"5e".repeat(20)}`;

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

async function open(options: WorldOptions = {}, nodeOptions: NodeOptions = {}): Promise<WorldNode> {
  world = new World(options);
  ops = new OperatedWorld(world);
  return world.startNode(nodeOptions);
}

/** Another program's transaction is mined at the nonce of this transaction. */
async function lost(entry: WorldNode): Promise<string> {
  world.holdBlocks();
  const txId = await ops.sent(entry);
  world.chain.mineForeign(SIGNER);
  world.releaseBlocks();
  return txId;
}

const never = () => new Promise<never>(() => undefined);
const ask = ({ node }: WorldNode, txId: string) => world.settle(node.api.explain(txId));

function intake(txId: string, requestId: string | null, value: bigint): Intent {
  const lane = { chainId: CHAIN_ID, signer: SIGNER };
  const fingerprint = `0x${value.toString(16).padStart(64, "0")}` as const;
  return { txId, lane, requestId, owner: null, payload: { to: TO, data: "0x", value }, fingerprint, metadata: null };
}

const STORIES: Partial<Readonly<Record<CauseCode, () => Promise<Explanation>>>> = {
  REPLACED: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const payload = { to: TO, value: "2", gas: 21_000 };
    await ops.act(entry, "replace", { txId, request: { payload } });
    world.releaseBlocks();
    await ops.settled(txId);
    return ask(entry, txId);
  },
  AWAITING_APPROVAL: async () => {
    const entry = await open({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    return ask(entry, await ops.create(entry));
  },
  REFUSAL_UNCONFIRMED: async () => {
    const entry = await open({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    const txId = await ops.create(entry);
    world.holdBlocks();
    entry.faults.lieAboutBalance(() => 0n);
    await ops.act(entry, "approve", { txId });
    await world.clock.advance(5_000);
    return ask(entry, txId);
  },
  EXPIRED: async () => {
    const requireApproval = { aboveValue: "0", expiresAfter: "5s" };
    const entry = await open({ policies: forSigner(SIGNER, { requireApproval }) });
    const txId = await ops.create(entry);
    await world.until(() => world.database.state.transactions.has(txId));
    return ask(entry, txId);
  },
  HELD: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    await ops.act(entry, "suspend", { txId });
    return ask(entry, txId);
  },
  EXPIRES: async () => {
    const entry = await open();
    world.holdBlocks();
    const validUntil = new Date(world.clock.now().getTime() + 60_000);
    return ask(entry, await ops.sent(entry, { validUntil }));
  },
  EXPIRING: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry, { validUntil: new Date(world.clock.now().getTime() + 5_000) });
    await world.until(() => ops.row(txId).expiredAt !== null);
    return ask(entry, txId);
  },
  POLICY_LIMIT_REACHED: async () => {
    const most = 21_000n * 20n * GWEI + 1n;
    const entry = await open({ policies: forSigner(SIGNER, { maxCost: { perTransaction: `${most}` } }) });
    world.chain.setBaseFee(50n * GWEI);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).lastSubmittedAt !== null);
    await world.clock.advance(2_000);
    return ask(entry, txId);
  },
  CANCELLED: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    await ops.act(entry, "cancel", { txId });
    world.releaseBlocks();
    await ops.settled(txId);
    return ask(entry, txId);
  },
  NONCE_CONSUMED_EXTERNALLY: async () => {
    const entry = await open();
    const txId = await lost(entry);
    await ops.settled(txId);
    return ask(entry, txId);
  },
  NONCE_USED_BY_OTHERS: async () => {
    const entry = await open({ settings: { confirmations: 1_000 } });
    const txId = await lost(entry);
    await world.until(() => ops.row(txId).subState === "MINED");
    return ask(entry, txId);
  },
  REJECTED: async () => {
    const entry = await open();
    entry.signer.refuse(() => true);
    const txId = await ops.create(entry);
    await ops.settled(txId);
    return ask(entry, txId);
  },
  REQUEST_ID_REUSED: async () => {
    const entry = await open();
    const { requestId } = transfer();
    await ops.create(entry, { requestId });
    const txId = "0190f5c2-0000-7000-8000-00000000abcd";
    world.database.insertIntake(intake(txId, requestId as string, 9n));
    await world.allSettled(2);
    return ask(entry, txId);
  },
  WAITING_FOR_SIGNATURE: async () => {
    const entry = await open();
    entry.signer.sign = never;
    return ask(entry, await ops.create(entry));
  },
  WAITING_FOR_SEND: async () => {
    const entry = await open();
    entry.rpc.submit = never;
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "TRACKING");
    return ask(entry, txId);
  },
  KILLED: async () => {
    const entry = await open();
    await world.settle(entry.node.api.kill({ signer: null, request: undefined, actor: "operator:ops" }));
    return ask(entry, await ops.create(entry));
  },
  LANE_SUSPENDED: async () => {
    const entry = await open();
    await ops.lane(entry, "suspend");
    return ask(entry, await ops.create(entry));
  },
  HOLE_BELOW: async () => {
    const entry = await open();
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    const txId = await ops.sent(entry);
    await world.settle(entry.node.api.releaseNonce(reservation.reservationId));
    return ask(entry, txId);
  },
  RESERVED_BELOW: async () => {
    const entry = await open();
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    return ask(entry, await ops.sent(entry));
  },
  OWNER_SILENT: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const reader = world.addNode({ signers: [TO] });
    world.crash(entry);
    await world.clock.advance(11_000);
    return ask(reader, txId);
  },
  CHAIN_UNKNOWN: async () => {
    const entry = await open();
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const codec = { checksum: (address: Address) => address };
    const reports = { unownedSince: () => null };
    const elsewhere = { chains: new Map(), lanesOf: () => [], kills: entry.node.kills, codec, reports };
    return explanationOf({ store: entry.store, clock: world.clock, ...elsewhere }, txId);
  },
  SIGNER_AWAY: async () => {
    const entry = await open();
    entry.signer.sign = () => Promise.reject(new Error("connection refused"));
    const txId = await ops.create(entry);
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "SIGNER_AWAY"));
    return ask(entry, txId);
  },
  SIGNER_LIES: async () => {
    const entry = await open();
    entry.signer.sign = () => Promise.reject(new SignerAway("it signed another receiver", { lies: true }));
    const txId = await ops.create(entry);
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "SIGNER_LIES"));
    return ask(entry, txId);
  },
  CHAIN_DOUBTED: async () => {
    const entry = await open();
    await ops.settled(await ops.create(entry));
    world.holdBlocks();
    const txId = await ops.sent(entry);
    const recoverSender = senderFromFakeSignature;
    entry.rpc.serve(new SimulatedChain({ chainId: CHAIN_ID, seed: "another", recoverSender, pool: ROOMY_POOL }));
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "CHAIN_DISTRUSTED"));
    return ask(entry, txId);
  },
  RPC_DISAGREES: async () => {
    const entry = await open();
    entry.faults.lieAboutReceipts((honest) => ({ ...honest, status: "reverted" }));
    const txId = await ops.create(entry);
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "RPC_DISAGREES"));
    return ask(entry, txId);
  },
  RPC_BEHIND: async () => {
    const entry = await open();
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).subState === "MINED");
    Object.assign(entry.rpc, { settleReceipts: () => Promise.reject(new ChainUnavailable("no receipts today")) });
    await world.until(() => entry.events.some((event) => event.type === "alert" && event.code === "RPC_BEHIND"));
    return ask(entry, txId);
  },
  FEE_CEILING_REACHED: async () => {
    const entry = await open({ settings: { maxFeeWei: 21n * GWEI, resubmitIntervalMs: 1_000 } });
    world.chain.setBaseFee(19n * GWEI);
    world.holdBlocks();
    const txId = await ops.sent(entry);
    world.chain.setBaseFee(60n * GWEI);
    world.releaseBlocks();
    await world.until(() =>
      entry.events.some((event) => event.type === "alert" && event.code === "FEE_CEILING_REACHED"),
    );
    return ask(entry, txId);
  },
  SENT_PRIVATELY: async () => {
    const entry = await open({}, { privateEndpoints: ["http://private.example"] });
    world.holdBlocks();
    return ask(entry, await ops.sent(entry));
  },
  NODE_WANTS_LOWER_NONCE: async () => {
    const entry = await open({ chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } } });
    await ops.settled(await ops.create(entry));
    world.holdBlocks();
    await ops.sent(entry);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).lastError !== null);
    return ask(entry, txId);
  },
  SUBMIT_RESULT_UNKNOWN: async () => {
    const entry = await open({ signers: [], nodeSigners: [NODE_SIGNER] });
    entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendTransaction" });
    const txId = await ops.create(entry, { signer: NODE_SIGNER });
    await world.until(() => ops.row(txId).subState === "UNKNOWN_SUBMIT_RESULT");
    return ask(entry, txId);
  },
  RESENT_OFTEN: async () => {
    const entry = await open({ settings: { resubmitIntervalMs: 1_000, stuckAfterResubmits: 3, repricing: null } });
    world.holdBlocks();
    const txId = await ops.sent(entry);
    await world.until(() => ops.row(txId).state === "STUCK");
    return ask(entry, txId);
  },
  STUCK: async () => {
    const entry = await open({ settings: { stuckAfterMs: 20_000, repricing: null } });
    world.chain.setBaseFee(500n * GWEI);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "STUCK");
    return ask(entry, txId);
  },
};

describe("an explanation of a real situation", () => {
  it.each(Object.entries(STORIES))("says %s, with a readable sentence", async (code, story) => {
    const { summary, causes, actions } = await story();
    expect(causes.map((cause) => cause.code)).toContain(code);
    expect(causes.find((cause) => cause.code === code)?.text).toMatch(/\w+ \w+/);
    expect(summary).toContain(causes[0]?.text);
    expect(summary).toMatch(/^(Nonce \d+( is stuck)?|It has no nonce yet|It is over): .*\.$/);
    const [entry] = world.nodes;
    if (entry === undefined) throw new Error("nobody is there to act");
    for (const action of actions.slice(0, 1)) await expect(take({ world, entry }, action)).resolves.toBeDefined();
  });

  // protects [Explained, and said aloud] src/domain/troubles/obstacles.ts, src/application/queries/explain.ts
  it("is tested for every existing cause", () => {
    const beside = readFileSync(new URL("./explain.test.ts", import.meta.url), "utf8");
    const covered = new Set([...beside.matchAll(/"(?:says )?([A-Z]+(?:_[A-Z]+)*)\b/g)].map(([, code]) => code));
    expect(CAUSE_CODES.filter((code) => STORIES[code] === undefined && !covered.has(code))).toEqual([]);
  });
});
