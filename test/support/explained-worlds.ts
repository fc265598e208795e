/**
 * Simulated situations in which transactions wait, for one reason or several. They are the input for tests of
 * `explain`.
 */

import type { Address, Hash } from "../../src/domain/lane.ts";
import type { OfferedAction } from "../../src/domain/troubles/situation.ts";
import { ROOMY_POOL } from "../doubles/simulated-chain/pool.ts";
import { OperatedWorld } from "./operations.ts";
import { forSigner } from "./policies.ts";
import { SIGNER, World, type WorldNode, type WorldOptions } from "./world.ts";

const GWEI = 1_000_000_000n;
const NODE_SIGNER: Address = `0x${"5e".repeat(20)}`;

export interface Waiting {
  readonly world: World;
  readonly entry: WorldNode;
  /** Transaction ids in the order of their nonces. */
  readonly txIds: readonly string[];
  /** A change outside Fencepost that must happen, besides the offered actions, before the transactions can be mined. */
  readonly remedy?: () => void;
}

/** Carries out an offered action, given in the form in which the HTTP API would receive it. */
export function take(
  { world, entry }: Pick<Waiting, "world" | "entry">,
  { method, path, body }: OfferedAction,
): Promise<unknown> {
  const { api } = entry.node;
  const [, kind, name, action] = /^\/api\/v1\/(tx|signers|kill)(?:\/([^/]+)\/([a-z]+))?$/.exec(path) ?? [];
  const actionRequest = { request: body, actor: "operator:ops" };
  if (method === "DELETE") return world.settle(api.endKill({ ...actionRequest, signer: name ?? null }));
  if (kind === "signers")
    return world.settle(api.actOnLane({ ...actionRequest, action: action as "resume", signer: name ?? "" }));
  return world.settle(api.act({ ...actionRequest, action: action as "cancel", txId: name ?? "" }));
}

class Scene extends OperatedWorld {
  readonly entry: WorldNode;

  constructor(world: World, entry: WorldNode) {
    super(world);
    this.entry = entry;
  }

  static async open(options: WorldOptions = {}): Promise<Scene> {
    const world = new World(options);
    return new Scene(world, await world.startNode());
  }

  async creates(count: number, overrides: Parameters<OperatedWorld["create"]>[1] = {}): Promise<readonly string[]> {
    const txIds: string[] = [];
    for (let made = 0; made < count; made++) txIds.push(await this.create(this.entry, overrides));
    return txIds;
  }

  /** Creates three transactions that a node has accepted. */
  async three(overrides: Parameters<OperatedWorld["create"]>[1] = {}): Promise<readonly string[]> {
    const txIds = await this.creates(3, overrides);
    await this.world.until(() => txIds.every((txId) => this.row(txId).subState === "BROADCAST"));
    return txIds;
  }

  dropped(txId: string | undefined): void {
    this.world.chain.dropTransaction(this.row(txId ?? "").attempts[0]?.txHash as Hash);
  }

  waiting(txIds: readonly string[], remedy?: () => void): Waiting {
    const { world, entry } = this;
    return remedy === undefined ? { world, entry, txIds } : { world, entry, txIds, remedy };
  }
}

async function stopped(how: (scene: Scene, txIds: readonly string[]) => Promise<unknown>): Promise<Waiting> {
  const scene = await Scene.open();
  scene.world.holdBlocks();
  const txIds = await scene.three();
  await how(scene, txIds);
  return scene.waiting([...txIds, await scene.create(scene.entry)], () => scene.world.releaseBlocks());
}

const kill = ({ world, entry }: Scene, signer: string | null) =>
  world.settle(entry.node.api.kill({ signer, request: undefined, actor: "operator:ops" }));

async function dear(options: WorldOptions["settings"], baseFee = 60n * GWEI): Promise<Waiting> {
  const scene = await Scene.open({ settings: { repricing: null, ...options } });
  scene.world.holdBlocks();
  const txIds = await scene.three();
  scene.world.chain.setBaseFee(baseFee);
  scene.world.releaseBlocks();
  const head = scene.row(txIds[0] ?? "");
  if (options?.stuckAfterMs !== undefined) await scene.world.until(() => scene.row(head.txId).state === "STUCK");
  else await scene.world.clock.advance(3_000);
  return scene.waiting(txIds);
}

async function aboveHole(options: WorldOptions["settings"], until: (scene: Scene, head: string) => boolean) {
  const scene = await Scene.open({ settings: { ...options } });
  const { node } = scene.entry;
  const ttl = options?.expiredReservations === undefined ? "5m" : "1s";
  const { reservation } = await scene.world.settle(node.api.reserveNonce({ signer: SIGNER, ttl }));
  const txIds = await scene.three();
  if (ttl === "5m") await scene.world.settle(node.api.releaseNonce(reservation.reservationId));
  await scene.world.until(() => until(scene, txIds[0] ?? ""));
  return scene.waiting(txIds);
}

const isStuck = (scene: Scene, head: string): boolean => scene.row(head).state === "STUCK";

/** Functions that create each situation, by its name. */
export const WORLDS: Readonly<Record<string, () => Promise<Waiting>>> = {
  "nothing is wrong": () => stopped(async () => undefined),
  "the head offers too little": () => dear({}),
  "the head is stuck because it offers too little": () => dear({ stuckAfterMs: 20_000 }),
  "the head is at its ceiling": () => dear({ maxFeeWei: 21n * GWEI }),
  "a cancel offers too little": async () => {
    const scene = await Scene.open({ settings: { repricing: null, stuckAfterMs: 20_000 } });
    scene.world.holdBlocks();
    const txIds = await scene.three();
    await scene.act(scene.entry, "cancel", { txId: txIds[0] ?? "" });
    scene.world.chain.setBaseFee(60n * GWEI);
    scene.world.releaseBlocks();
    await scene.world.until(() => isStuck(scene, txIds[0] ?? ""));
    return scene.waiting(txIds);
  },
  "the head is stuck, and no reason is known": async () => {
    const scene = await Scene.open({ settings: { stuckAfterMs: 20_000 } });
    scene.world.holdBlocks();
    const txIds = await scene.three();
    await scene.world.until(() => isStuck(scene, txIds[0] ?? ""));
    return scene.waiting(txIds, () => scene.world.releaseBlocks());
  },
  "the head was sent again too often": async () => {
    const scene = await Scene.open({
      settings: { resubmitIntervalMs: 1_000, stuckAfterResubmits: 3, repricing: null },
    });
    scene.world.holdBlocks();
    const txIds = await scene.three();
    await scene.world.until(() => isStuck(scene, txIds[0] ?? ""));
    return scene.waiting(txIds, () => scene.world.releaseBlocks());
  },
  "a node has forgotten the head": () => stopped(async (scene, [head]) => scene.dropped(head)),
  "the head is held back": () => stopped((scene, [txId = ""]) => scene.act(scene.entry, "suspend", { txId })),
  "the second is held back": () => stopped((scene, [, txId = ""]) => scene.act(scene.entry, "suspend", { txId })),
  "the first is held back before it is signed": async () => {
    const scene = await Scene.open();
    await scene.lane(scene.entry, "suspend");
    const txIds = await scene.creates(3);
    await scene.act(scene.entry, "suspend", { txId: txIds[0] ?? "" });
    await scene.lane(scene.entry, "resume");
    await scene.world.clock.advance(1_000);
    return scene.waiting(txIds);
  },
  "the lane is suspended": () => stopped((scene) => scene.lane(scene.entry, "suspend")),
  "everything is stopped": () => stopped((scene) => kill(scene, null)),
  "the signer is stopped": () => stopped((scene) => kill(scene, SIGNER)),
  "everything is stopped, the lane suspended and the head held back": () =>
    stopped(async (scene, [txId = ""]) => {
      await scene.act(scene.entry, "suspend", { txId });
      await scene.lane(scene.entry, "suspend");
      await kill(scene, null);
    }),
  "a hole is below": () => aboveHole({}, () => true),
  "a hole is below, and the head is stuck for it": () => aboveHole({}, isStuck),
  "a hole is below that a loop fills": () => aboveHole({ holePolicy: "heal" }, () => true),
  "an expired reservation is below, and the head is stuck for it": () =>
    aboveHole({ expiredReservations: "hole" }, isStuck),
  "a nonce below is reserved": async () => {
    const scene = await Scene.open();
    await scene.world.settle(scene.entry.node.api.reserveNonce({ signer: SIGNER }));
    return scene.waiting(await scene.three());
  },
  "the signer is away": async () => {
    const scene = await Scene.open();
    const { signer } = scene.entry;
    const sign = signer.sign.bind(signer);
    signer.sign = () => Promise.reject(new Error("connection refused"));
    const txIds = await scene.creates(3);
    await scene.world.clock.advance(3_000);
    return scene.waiting(txIds, () => Object.assign(signer, { sign }));
  },
  "the funds are short": async () => {
    const scene = await Scene.open();
    const unlock = scene.entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const txIds = await scene.creates(3, { payload: { to: SIGNER, value: `${10n ** 18n}`, gas: 21_000 } });
    await scene.world.until(() => scene.row(txIds[0] ?? "").state === "TRACKING");
    scene.world.chain.setBalance(SIGNER, 10n ** 17n);
    unlock();
    await scene.world.until(() => scene.row(txIds[0] ?? "").lastError?.startsWith("insufficientFunds") === true);
    return scene.waiting(txIds.slice(0, 1));
  },
  "a node refuses the head": async () => {
    const scene = await Scene.open();
    const unlock = scene.entry.faults.inject({ kind: "unavailable" }, { method: "eth_sendRawTransaction" });
    const payload = {
      to: SIGNER,
      value: "1",
      gas: 100_000,
      maxFeePerGas: "20000000000",
      maxPriorityFeePerGas: "1000000000",
    };
    const txIds = await scene.creates(1, { payload });
    await scene.world.until(() => scene.row(txIds[0] ?? "").state === "TRACKING");
    scene.world.chain.setBlockGasLimit(50_000n);
    unlock();
    await scene.world.until(() => scene.row(txIds[0] ?? "").lastError?.startsWith("rejected") === true);
    return scene.waiting([...txIds, ...(await scene.creates(1))]);
  },
  "a policy allows no more": async () => {
    const most = 21_000n * 20n * GWEI + 1n;
    const scene = await Scene.open({ policies: forSigner(SIGNER, { maxCost: { perTransaction: `${most}` } }) });
    scene.world.chain.setBaseFee(50n * GWEI);
    const txIds = await scene.creates(2);
    await scene.world.until(() => txIds.every((txId) => scene.row(txId).lastSubmittedAt !== null));
    await scene.world.clock.advance(2_000);
    return scene.waiting(txIds);
  },
  "a second key has to approve": async () => {
    const scene = await Scene.open({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    return scene.waiting(await scene.creates(2));
  },
  "a second key has to approve what is held back": async () => {
    const scene = await Scene.open({ policies: forSigner(SIGNER, { requireApproval: { aboveValue: "0" } }) });
    const [txId = ""] = await scene.creates(1);
    await scene.act(scene.entry, "suspend", { txId });
    return scene.waiting([txId]);
  },
  "the window is full behind a head that offers too little": async () => {
    const scene = await Scene.open({ settings: { repricing: null, inFlightWindow: 2 } });
    scene.world.holdBlocks();
    const txIds = await scene.creates(4);
    await scene.world.until(() => scene.row(txIds[1] ?? "").subState === "BROADCAST");
    scene.world.chain.setBaseFee(60n * GWEI);
    scene.world.releaseBlocks();
    await scene.world.clock.advance(2_000);
    return scene.waiting(txIds);
  },
  "only a hash is known of the head": async () => {
    const scene = await Scene.open({ settings: { stuckAfterMs: 20_000 } });
    const { node } = scene.entry;
    const { reservation } = await scene.world.settle(node.api.reserveNonce({ signer: SIGNER }));
    const used = { txHash: `0x${"7a".repeat(32)}` };
    const { txId } = await scene.world.settle(node.api.markUsed(reservation.reservationId, used));
    const behind = await scene.create(scene.entry);
    await scene.world.until(() => isStuck(scene, txId));
    return scene.waiting([txId, behind]);
  },
  "the chain node signs, and the head offers too little": async () => {
    const scene = await Scene.open({ signers: [], nodeSigners: [NODE_SIGNER], settings: { stuckAfterMs: 20_000 } });
    scene.world.holdBlocks();
    const txIds = await scene.three({ signer: NODE_SIGNER });
    scene.world.chain.setBaseFee(60n * GWEI);
    scene.world.releaseBlocks();
    await scene.world.until(() => isStuck(scene, txIds[0] ?? ""));
    return scene.waiting(txIds, () => scene.world.chain.setBaseFee(GWEI));
  },
  "no endpoint answers": async () => {
    const scene = await Scene.open();
    scene.world.holdBlocks();
    const txIds = await scene.three();
    const back = scene.entry.faults.inject({ kind: "unavailable" });
    await scene.world.clock.advance(10_000);
    return scene.waiting(txIds, () => {
      back();
      scene.world.releaseBlocks();
    });
  },
  "its time is over while the lane is suspended": async () => {
    const scene = await Scene.open();
    scene.world.holdBlocks();
    const validUntil = new Date(scene.world.clock.now().getTime() + 5_000);
    const txIds = await scene.three({ validUntil });
    await scene.lane(scene.entry, "suspend");
    await scene.world.clock.advance(10_000);
    return scene.waiting(txIds, () => scene.world.releaseBlocks());
  },
  "the node asks for more": async () => {
    const scene = await Scene.open({ chain: { minimumTip: 2n * GWEI }, settings: { resubmitIntervalMs: null } });
    const txIds = await scene.creates(2);
    await scene.world.until(() => scene.row(txIds[0] ?? "").lastError?.startsWith("underpriced") === true);
    return scene.waiting(txIds);
  },
  "the node takes one nonce at a time": async () => {
    const scene = await Scene.open({ chain: { pool: { ...ROOMY_POOL, futureNonces: "refuseUnmined" } } });
    await scene.settled(await scene.create(scene.entry));
    scene.world.holdBlocks();
    const first = await scene.sent(scene.entry);
    const second = await scene.create(scene.entry);
    await scene.world.until(() => scene.row(second).lastError !== null);
    return scene.waiting([first, second], () => scene.world.releaseBlocks());
  },
  "another program has used the nonce": async () => {
    const scene = await Scene.open();
    scene.world.holdBlocks();
    const txIds = await scene.three();
    scene.world.chain.mineForeign(SIGNER);
    return scene.waiting(txIds.slice(0, 1), () => scene.world.releaseBlocks());
  },
};
