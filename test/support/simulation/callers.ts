import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { normalise } from "../../../src/application/requests/normalise.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address } from "../../../src/domain/lane.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { createSeededEntropy } from "../../doubles/seeded-entropy.ts";
import { CHAIN_ID, SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";

/** A pool of all signers whose keys the nodes hold. */
export const POOL = "everybody";

/** A caller's request; the value distinguishes payloads. */
export interface Wish {
  readonly signer: Address | typeof POOL;
  readonly requestId: string | null;
  readonly value: number;
  /** True if the database refuses this request and every batch that contains it. */
  readonly poison: boolean;
  /** The deadline: a transaction not mined by then is cancelled. */
  readonly validUntil?: string;
}

export interface Acknowledged extends Wish {
  readonly txId: string;
  readonly nonce: number | null;
}

const CLIENT_TIMEOUT_MS = 3_000;
const PATIENCE = 40;

/**
 * Simulated callers of the API and of the intake table. They remember every response: each accepted transaction must
 * exist at the end, and no request that was definitely refused may exist.
 */
export class Callers extends Actor {
  readonly acknowledged: Acknowledged[] = [];
  /**
   * Requests that certainly did not create a transaction: they had no request id, and the response said that nothing
   * was accepted.
   */
  readonly refused: Wish[] = [];
  readonly intake: { readonly txId: string; readonly wish: Wish }[] = [];
  unknown = 0;
  private readonly entropy = createSeededEntropy(4_711);
  private readonly timeDice: Dice;
  private readonly wishes: Wish[] = [];
  private serial = 0;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], timeDice: Dice) {
    super(world, dice, nodes);
    this.timeDice = timeDice;
  }

  get asked(): number {
    return this.serial;
  }

  /** Sends some creates at once, singly or as a batch, and follows each in the background. */
  call(count: number): void {
    const wishes = Array.from({ length: count }, () => this.wish());
    const calls = this.dice.chance(0.3) ? [wishes] : wishes.map((wish) => [wish]);
    for (const batch of calls) this.begin(this.follow(batch));
  }

  /** Inserts the rows that a caller's own transaction writes when it commits. */
  writeIntake(): void {
    const { signer, ...rest } = this.wish();
    // Pools are not available for intents that a caller inserts into the database, so choose a signer.
    const wish = { ...rest, signer: signer === POOL ? (SIGNERS[0] as Address) : signer, poison: false };
    const ports = { codec: createCodec(), entropy: this.entropy, chainIds: [CHAIN_ID] };
    const intent = normalise(ports, requestOf(wish));
    this.world.database.insertIntake(intent);
    this.intake.push({ txId: intent.txId, wish });
  }

  /** A new request, an exact repeat of an earlier one, or one with the same id and another payload. */
  private wish(): Wish {
    const value = ++this.serial;
    const known = this.wishes.length === 0 ? null : this.dice.pick(this.wishes);
    if (known !== null && this.dice.chance(0.15)) return known;
    if (known !== null && this.dice.chance(0.05))
      return { ...known, signer: this.repairable(known.signer, value), value };
    const picked = this.dice.pick(SIGNERS);
    const signer = value % 5 === 2 ? POOL : this.repairable(picked, value);
    const time = this.time();
    if (this.dice.chance(0.15)) return { signer, requestId: null, value, poison: this.dice.chance(0.15), ...time };
    const wish = { signer, requestId: `request ${value}`, value, poison: false, ...time };
    this.wishes.push(wish);
    return wish;
  }

  /**
   * Gas that the chain refuses is lowered by another payload, which waits for the hash of the first one. A node that
   * holds the key reports none for what it refused, so only an operator can repair that: another signer is used.
   */
  private repairable(signer: Wish["signer"], value: number): Wish["signer"] {
    const isStuck = signer !== POOL && this.world.nodeSigners.includes(signer) && receiverOf(value).to === FURNACE;
    return isStuck ? (SIGNERS[0] as Address) : signer;
  }

  /** Some requests have a short deadline, which for some is over before a node receives them. */
  private time(): Pick<Wish, "validUntil"> {
    if (!this.timeDice.chance(0.2)) return {};
    const ms = this.timeDice.pick([1, 300, 2_000, 8_000, 30_000, 120_000]);
    return { validUntil: new Date(this.world.clock.now().getTime() + ms).toISOString() };
  }

  /** Requests with an id are repeated until they have a final response, as an idempotent client does. */
  private async follow(batch: readonly Wish[]): Promise<void> {
    let left = batch;
    for (let attempt = 0; left.length > 0 && attempt < PATIENCE; attempt++) {
      if (attempt > 0) await this.world.clock.sleep(this.dice.int(50, 800));
      const [node] = [this.nodes()].filter((nodes) => nodes.length > 0).map((nodes) => this.dice.pick(nodes));
      if (node === undefined) continue;
      const answers = await this.ask(node, left);
      left = left.filter((wish, index) => this.note(wish, answers?.[index]));
    }
  }

  private async ask(node: WorldNode, batch: readonly Wish[]): Promise<readonly (Created | FencepostError)[] | null> {
    const call = node.node.api.createBatch(batch.map(requestOf));
    const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null);
    try {
      return await Promise.race([call, timeout]);
    } catch (error) {
      this.absurd.push(`createBatch threw ${String(error)}`);
      return null;
    }
  }

  /** Records a response. Returns true if a repeat makes sense. */
  private note(wish: Wish, answer: Created | FencepostError | undefined): boolean {
    const again = wish.requestId !== null;
    if (answer === undefined) {
      this.unknown++;
      return again;
    }
    if (!(answer instanceof FencepostError)) {
      this.acknowledged.push({ ...wish, txId: answer.txId, nonce: answer.nonce });
      return false;
    }
    if (answer.extras.outcome === "unknown") this.unknown++;
    else if (!again) this.refused.push(wish);
    const expected = ["UNAVAILABLE", "NOT_LEADER", "QUEUE_FULL", "REQUEST_ID_REUSED"];
    const isTooLate = wish.validUntil !== undefined && answer.message.startsWith("validUntil: ");
    if (isTooLate) return false;
    const isTooCheap = answer.code === "SUBMISSION_REJECTED" && answer.message.includes("base fee");
    const isLie = answer.code === "SUBMISSION_REJECTED" && FALSE_REFUSAL.test(answer.message);
    const isTooMuch = receiverOf(wish.value).to === FURNACE && TOO_MUCH_GAS.has(answer.extras.reason ?? "");
    if (
      !isTooCheap &&
      !isTooMuch &&
      !isLie &&
      !expected.includes(answer.code) &&
      !(wish.poison && answer.code === "INVALID_REQUEST")
    ) {
      this.absurd.push(`${JSON.stringify(wish)} was answered ${answer.code}: ${answer.message}`);
    }
    return again && answer.code !== "REQUEST_ID_REUSED";
  }
}

/**
 * A contract that needs most of the gas that the chain allows in one transaction. With the usual margin of a fifth
 * added, it exceeds the cap.
 */
export const FURNACE: Address = `0x${"f".repeat(40)}`;
export const TRANSACTION_GAS_CAP = 2_000_000n;
export const FURNACE_GAS = 1_700_000n;

/**
 * How one endpoint that lies refuses a new request, of which nothing is stored. No signer of a simulation lacks money,
 * and no contract of a simulation reverts at an estimate.
 */
export const FALSE_REFUSAL = /insufficient funds|would revert|no signer of the pool .* has as much/;

/**
 * Expected refusals of a create to `FURNACE`: an endpoint reports false gas for a while, or the cost ceiling of this
 * simulation suffices only for transfers.
 */
const TOO_MUCH_GAS: ReadonlySet<string> = new Set(["GAS_OVER_BLOCK", "FEE_OVER_CEILING"]);

/**
 * Returns recipient and gas, derived from the value so that a repeated request has the same payload. Most requests name
 * their gas; for some, Fencepost estimates it.
 */
function receiverOf(value: number): { readonly to: Address; readonly gas?: number } {
  if (value % 8 === 1) return { to: FURNACE };
  return value % 8 === 5 ? { to: TO } : { to: TO, gas: 21_000 };
}

function requestOf({ signer, requestId, value, poison, validUntil }: Wish): CreateRequest {
  const fees = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
  return {
    signer: signer === POOL ? { pool: POOL } : signer,
    payload: { ...receiverOf(value), value, ...fees },
    ...(requestId === null ? {} : { requestId }),
    ...(poison ? { metadata: { poison } } : {}),
    ...(validUntil === undefined ? {} : { validUntil }),
  };
}
