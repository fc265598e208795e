import type { Created, CreateRequest } from "../../../../src/application/api.ts";
import { FencepostError } from "../../../../src/domain/errors.ts";
import type { CreateLimits } from "../../../../src/domain/keys/principal.ts";
import type { Address } from "../../../../src/domain/lane.ts";
import { isSettled } from "../../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../../src/main/dev/chaos/dice.ts";
import { BatchRefused, type LaneWrite } from "../../../../src/ports/lane-store.ts";
import { Faults } from "../../../doubles/simulated-chain/faults.ts";
import type { NodeOptions, World, WorldNode } from "../../world.ts";
import { TO } from "../../world.ts";
import type { Crew } from "../crew.ts";

export type Answer = Created | FencepostError;
interface Request extends CreateRequest {
  readonly payload: object;
  /** The payload's value, by which its row is found. */
  readonly worth: string;
}

/** Signers that only the nodes of exams have. The pool has the first three; the last one is for an embedded node. */
export const STRANGERS: readonly Address[] = [1, 2, 3, 4, 5, 6].map(
  (n) => `0x${n.toString(16).padStart(40, "d")}` as Address,
);
export const EXAM_POOL = "examined";
export const LIMIT_OF_QUEUE = 8;
/** First value of the payloads of exams, far from those of other actors. */
const FIRST_VALUE = 500_000_000;
/** A node without faults answers within this time, in ms. */
const PATIENCE_MS = 20_000;
/** While a desk waits for a rest: milliseconds between two blocks, and most blocks. */
const BLOCK_MS = 80;
const MOST_ROUNDS = 1_000;
const GWEI = 1_000_000_000n;
const FEES = { maxFeePerGas: String(4n * GWEI), maxPriorityFeePerGas: String(GWEI) };
const TRACEPARENT = `00-${"1".repeat(32)}-${"2".repeat(16)}-01`;

interface How {
  readonly at?: WorldNode;
  readonly owner?: string;
  readonly limits?: CreateLimits;
}

/** One value that an exam asked for, and all answers about it. */
interface Asked {
  readonly request: Request;
  readonly answers: (Answer | null)[];
}

/**
 * Where a simulation is examined once it is at rest: a node without faults whose signers nobody else uses, so that each
 * answer can be known beforehand. Everything that is asked here is compared with the database at the end.
 */
export class Desk {
  readonly violations: string[] = [];
  readonly counts = new Map<string, number>();
  readonly world: World;
  readonly crew: Crew;
  readonly dice: Dice;
  readonly node: WorldNode;
  /** The node's second endpoint. */
  readonly second = new Faults();
  /** Called before each transaction of the node's database; may delay it or make it fail. */
  beforeCommit: (writes: readonly LaneWrite[]) => Promise<void> | void = () => undefined;
  /** Most ms that each call of the node to the database or the chain takes, there and back. */
  slowMs = 0;
  private readonly asked = new Map<string, Asked>();
  private serial = 0;

  constructor(world: World, crew: Crew, dice: Dice) {
    this.world = world;
    this.crew = crew;
    this.dice = dice;
    this.node = this.hire({
      signers: STRANGERS.slice(0, 5),
      elsewhere: { chain: world.chain, faults: this.second },
      latency: async () => {
        if (this.slowMs > 0) await world.clock.sleep(dice.int(1, this.slowMs));
      },
      tracing: {
        tracer: { begin: () => ({ traceparent: TRACEPARENT, end: () => undefined }) },
        sink: () => undefined,
      },
    });
    const { store } = this.node;
    const commit = store.commit.bind(store);
    store.commit = async (writes) => {
      await this.beforeCommit(writes);
      const items = writes.flatMap((write) => (write.kind === "allocate" ? write.items : []));
      if (items.some(({ intent }) => intent.metadata?.poison === true)) throw new BatchRefused("poison");
      return commit(writes);
    };
  }

  /** Adds a node that no fault of the simulation strikes. */
  hire(options: NodeOptions): WorldNode {
    const pools = new Map([[EXAM_POOL, STRANGERS.slice(0, 3)]]);
    const maxGasCostWei = 21_000n * 40n * GWEI;
    const node = { queueLimit: LIMIT_OF_QUEUE, pools };
    return this.crew.hire({ settings: { maxFeeWei: null, maxGasCostWei }, node, ...options });
  }

  /** A transfer with gas and fees, of a value that no other request has. */
  transfer(
    signer: CreateRequest["signer"],
    payload: { readonly value?: string; readonly [field: string]: unknown } = {},
    more: Partial<Omit<CreateRequest, "payload">> = {},
  ): Request {
    const value = String(FIRST_VALUE + ++this.serial * 10);
    const whole = { to: TO, value, gas: 21_000, ...FEES, ...payload };
    return { signer, payload: whole, worth: whole.value, ...more };
  }

  /** The answers to a batch, in order; null for one that came too late. */
  async batch(requests: readonly Request[], { at = this.node, owner, limits }: How = {}) {
    return this.note(requests, at.node.api.createBatch(requests.map(bare), owner, limits));
  }

  async single(request: Request, { at = this.node, owner, limits }: How = {}): Promise<Answer | null> {
    const asked = at.node.api.create(bare(request), owner, limits).then(
      (made): readonly Answer[] => [made],
      (error: unknown) => {
        if (error instanceof FencepostError) return [error];
        throw error;
      },
    );
    const [answer = null] = await this.note([request], asked);
    return answer;
  }

  private async note(requests: readonly Request[], asked: Promise<readonly Answer[]>) {
    const late = this.world.clock.sleep(PATIENCE_MS).then(() => null);
    const answers = await Promise.race([asked, late]);
    if (answers === null) this.wrong(`${requests.length} creates got no answer`);
    return requests.map((request, at) => {
      const known = this.asked.get(request.worth) ?? { request, answers: [] };
      this.asked.set(request.worth, known);
      const answer = answers?.[at] ?? null;
      known.answers.push(answer);
      return answer;
    });
  }

  /** Checks that a create was accepted and is new. */
  expectNew(answer: Answer | null, what: string): answer is Created {
    const isNew = answer !== null && !(answer instanceof FencepostError) && answer.outcome === "created";
    if (!isNew) this.wrong(`${what} was answered ${described(answer)}`);
    return isNew;
  }

  /** Checks that a create was answered with the transaction of an earlier one. */
  expectSame(answer: Answer | null, first: Answer | null, what: string): void {
    if (first === null || first instanceof FencepostError) return;
    const isSame = answer !== null && !(answer instanceof FencepostError) && answer.txId === first.txId;
    if (!isSame || answer.outcome !== "existing") this.wrong(`${what} was answered ${described(answer)}`);
  }

  /** Checks that a create was refused with this code, or for this reason. */
  expectRefused(answer: Answer | null, why: string, what: string): answer is FencepostError {
    const isRefused = answer instanceof FencepostError && (answer.code === why || answer.extras.reason === why);
    if (!isRefused) this.wrong(`${what} was answered ${described(answer)}`);
    return isRefused;
  }

  wrong(what: string): void {
    this.violations.push(what);
  }

  count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }

  /** Waits until a fact holds. Not longer than a node without faults needs. */
  async reach(fact: () => boolean, what: string): Promise<void> {
    const { clock } = this.world;
    const until = clock.monotonicMs() + PATIENCE_MS;
    while (!fact() && clock.monotonicMs() < until) await clock.sleep(10);
    if (!fact()) this.wrong(`${what} was not reached`);
  }

  /** Waits until everything is settled. */
  async rest(): Promise<void> {
    const { world } = this;
    world.releaseBlocks();
    // Blocks come quickly meanwhile: nobody looks at their number.
    const isOver = () => world.rows().every(({ state }) => isSettled(state));
    for (let rounds = 0; !isOver() && rounds < MOST_ROUNDS; rounds++) {
      world.chain.mine();
      await world.clock.sleep(BLOCK_MS);
    }
    if (!isOver()) this.wrong("no rest was reached");
  }

  /** Compares all answers with the database: what was accepted exists once, and what was refused does not exist. */
  settle(): void {
    for (const [worth, { request, answers }] of this.asked) {
      const rows = this.world.rows().filter(({ payload }) => payload.value === BigInt(worth));
      if (rows.length > 1) this.wrong(`${JSON.stringify(request)} was made ${rows.length} times`);
      const made = answers.flatMap((each) => (each === null || each instanceof FencepostError ? [] : each.txId));
      if (made.some((txId) => rows[0]?.txId !== txId)) this.wrong(`${JSON.stringify(request)} is not ${made.join()}`);
      const isRefused = answers.every((each) => each instanceof FencepostError && each.extras.outcome !== "unknown");
      if (isRefused && rows.length > 0)
        this.wrong(`${JSON.stringify(request)} was made, and answered ${answers.join()}`);
    }
  }
}

function bare({ worth: _, ...request }: Request): CreateRequest {
  return request;
}

export function described(answer: Answer | null): string {
  if (answer === null) return "not at all";
  return answer instanceof FencepostError ? String(answer) : `${answer.outcome} ${answer.txId}`;
}
