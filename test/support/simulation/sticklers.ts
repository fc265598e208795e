import type { Created, CreateRequest } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { CreateLimits } from "../../../src/domain/keys/principal.ts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import { FALSE_REFUSAL, POOL } from "./callers.ts";

const CLIENT_TIMEOUT_MS = 3_000;
/** First value of the sticklers' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 200_000_000;
/** A contract that reverts every call. */
export const REVERTER: Address = `0x${"7".repeat(40)}`;
const STICKLER = "stickler";
/** Key of a caller that may fill only a small share of a queue. */
const MODEST = "modest";
const MOST_REPEATS = 6;
/** Answers that anything may get while nodes, database or chain fail. */
const LATER: readonly string[] = ["UNAVAILABLE", "NOT_LEADER", "QUEUE_FULL"];
const FEES = { maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };

type Answer = Created | FencepostError;

/** How well the nodes see the chain at this time. */
interface Sight {
  /** True if every node certainly knows the newest block and its price. */
  readonly isCalm: boolean;
  /** True if a node may not know yet of a reorg. */
  readonly hasReorged: boolean;
}

/** Request that no node may accept, and the reasons of which a refusal may name one. */
interface Hopeless {
  readonly payload: Readonly<Record<string, unknown>>;
  readonly reasons: readonly string[];
}

/**
 * Simulated callers who know what they must be answered: for requests that cannot succeed, nonces that they name,
 * request ids and nonces of others, bytes that they signed themselves, and shares of a queue.
 */
export class Sticklers extends Actor {
  readonly counts = new Map<string, number>();
  private readonly signer = new FakeSigner(SIGNERS);
  private readonly queueLimit: number;
  private serial = 0;
  private modest = 0;
  /** False once creates of the modest key may be under way that got no answer. */
  private isSure = true;

  private readonly sight: Sight;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], sight: Sight) {
    super(world, dice, nodes);
    this.queueLimit = world.queueLimit;
    this.sight = sight;
  }

  /** What may happen in one step of a simulation. */
  step(): void {
    const { dice } = this;
    if (dice.chance(0.3)) this.begin(this.askTheImpossible());
    if (dice.chance(0.2)) this.begin(this.nameNonce());
    if (dice.chance(0.1)) this.begin(this.shareRequestId());
    if (dice.chance(0.1)) this.begin(this.submitBytes());
    if (dice.chance(0.1)) this.begin(this.usePool());
    if (dice.chance(0.2) && this.modest === 0) this.begin(this.fillShare());
    if (dice.chance(0.1)) this.begin(this.nameNonceAboveOthers());
  }

  private async askTheImpossible(): Promise<void> {
    const signer = this.dice.pick(SIGNERS);
    const { payload, reasons } = this.dice.pick(this.hopelessOf(signer));
    // A payload at a price that nobody mines, accepted while no endpoint answers, is not signed again by a chain's node:
    // only an operator can repair that.
    if (reasons.includes("FEE_TOO_LOW") && this.world.nodeSigners.includes(signer)) return;
    const before = this.firstUnmined(signer);
    // Should a node accept it while no endpoint answers, it ends by itself.
    const validUntil = new Date(this.world.clock.now().getTime() + 15_000).toISOString();
    const answer = await this.create({ signer, payload: { to: TO, ...FEES, ...payload }, validUntil });
    if (answer === null || this.isLate(answer)) return;
    if (!(answer instanceof FencepostError)) {
      // A node knows that a price is hopeless, or that an address has no code, only from endpoints that tell the truth.
      if ((reasons.includes("FEE_TOO_LOW") || reasons.includes("NO_CODE")) && !this.sight.isCalm) return;
      return this.wrong(`${JSON.stringify(payload)} was accepted`);
    }
    if (isMarket(answer) && !reasons.includes(answer.extras.reason ?? ""))
      return this.count(`impossible: ${answer.extras.reason}`);
    const { code, extras } = answer;
    if (code !== "SUBMISSION_REJECTED" || !reasons.includes(extras.reason ?? ""))
      this.wrong(`${JSON.stringify(payload)} was answered ${String(answer)}`);
    // For a while after a reorg, a node may still take what it undid for mined.
    const isBehind = before !== null && !this.sight.hasReorged && this.firstUnmined(signer)?.txId === before.txId;
    if (isBehind && DEPENDING.includes(extras.reason ?? "") && extras.dependsOnPending !== true)
      this.wrong(`${extras.reason} was called final, behind nonce ${before.nonce}`);
    this.count(`impossible: ${extras.reason}`);
  }

  private hopelessOf(signer: Address): readonly Hopeless[] {
    const { balance } = this.world.chain.account(signer);
    const value = FIRST_VALUE + ++this.serial * 10;
    const anyGas = ["GAS_OVER_BLOCK", "FEE_OVER_CEILING"];
    return [
      { payload: { value: String(balance * 2n) }, reasons: ["INSUFFICIENT_FUNDS"] },
      { payload: { value: String(balance - 1n) }, reasons: ["INSUFFICIENT_FUNDS"] },
      { payload: { value, to: REVERTER, data: "0x12345678" }, reasons: ["REVERT", ...anyGas] },
      { payload: { value, data: "0x12345678" }, reasons: ["NO_CODE", "GAS_TOO_LOW", ...anyGas] },
      { payload: { value, gas: 20_999 }, reasons: ["GAS_TOO_LOW"] },
      { payload: { value, gas: 40_000_000 }, reasons: anyGas },
      { payload: { value, gas: 21_000, maxFeePerGas: "1000", maxPriorityFeePerGas: "0" }, reasons: ["FEE_TOO_LOW"] },
    ];
  }

  /** The lowest transaction of the signer that certainly is not mined. */
  private firstUnmined(signer: Address): TransactionRow | null {
    const mined = this.world.chain.account(signer).nonce;
    const open = this.world.rows().filter((row) => row.lane.signer === signer && row.nonce !== null);
    const [first = null] = open.filter((row) => (row.nonce ?? 0) >= mined && row.receipt === null);
    return first !== null && !isSettled(first.state) ? first : null;
  }

  /** Creates with a nonce near the next one; then the same and others at that nonce. */
  private async nameNonce(): Promise<void> {
    const signer = this.dice.pick(this.world.ownSigners);
    const nonce = Math.max(0, this.cursorOf(signer) + this.dice.pick([-1, 0, 0, 0, 1]));
    const request = { signer, nonce, payload: this.payload() };
    const made = await this.create(request);
    if (made === null || made instanceof FencepostError) return this.judgeRefusal(made, request);
    if (made.nonce !== nonce || made.outcome !== "created")
      this.wrong(`nonce ${nonce} was asked for, and ${made.outcome} with ${made.nonce}`);
    this.count("nonce named");
    const again = await this.create(request);
    const others = [
      await this.create({ ...request, payload: this.payload() }),
      await this.create(request, "somebody else"),
    ];
    // A payload that the signer refuses gives its nonce up.
    if (this.world.rows().find(({ txId }) => txId === made.txId)?.nonce !== nonce) return;
    if (again !== null && !(again instanceof FencepostError) && again.txId !== made.txId)
      this.wrong(`the same request at nonce ${nonce} made ${again.txId} beside ${made.txId}`);
    if (again instanceof FencepostError && !this.isLate(again) && !isMarket(again))
      this.wrong(`a repeat was answered ${String(again)}`);
    for (const other of others)
      if (other !== null && !(other instanceof FencepostError))
        this.wrong(`nonce ${nonce} was given to another request`);
  }

  private judgeRefusal(answer: Answer | null, { nonce, signer }: { readonly nonce: number; readonly signer: string }) {
    if (!(answer instanceof FencepostError) || this.isLate(answer)) return;
    const { code, extras } = answer;
    if (code === "CONFLICT" && extras.nextNonce !== nonce) return;
    if (!isMarket(answer)) this.wrong(`nonce ${nonce} of ${signer} was answered ${String(answer)}`);
  }

  /** Transactions with a short deadline, and one above them whose caller named its nonce. */
  private async nameNonceAboveOthers(): Promise<void> {
    const signer = this.dice.pick(this.world.ownSigners);
    const validUntil = new Date(this.world.clock.now().getTime() + this.dice.int(200, 3_000)).toISOString();
    const made = await Promise.all(
      Array.from({ length: this.dice.int(1, 4) }, () => this.create({ signer, payload: this.payload(), validUntil })),
    );
    const nonces = made.flatMap((each) => (each === null || each instanceof FencepostError ? [] : (each.nonce ?? [])));
    if (nonces.length > 0) await this.create({ signer, nonce: Math.max(...nonces) + 1, payload: this.payload() });
  }

  /** Two keys use the same request id: the second one learns nothing about the first one's transaction. */
  private async shareRequestId(): Promise<void> {
    const signer = this.dice.chance(0.3) ? { pool: POOL } : this.dice.pick(SIGNERS);
    const request = { signer, requestId: `shared ${++this.serial}`, payload: this.payload() };
    const made = await this.create(request);
    if (made === null || made instanceof FencepostError) return;
    const other = await this.create(request, "somebody else");
    if (other === null) return;
    if (!(other instanceof FencepostError)) return this.wrong(`${other.txId} was shown to another key`);
    if (this.isLate(other)) return;
    if (other.code !== "REQUEST_ID_REUSED" || other.extras.txId !== undefined)
      this.wrong(`another key was answered ${String(other)} ${JSON.stringify(other.extras)}`);
    this.count("request id of another key");
  }

  /** Bytes that the caller signed for the next nonce, or for one near it. */
  private async submitBytes(): Promise<void> {
    const signer = this.dice.pick(this.world.ownSigners);
    const nonce = Math.max(0, this.cursorOf(signer) + this.dice.pick([-1, 0, 0, 1, 2]));
    const gas = this.dice.pick([21_000n, 21_000n, 20_000n, 40_000_000n]);
    const rawTransaction = await this.sign(signer, nonce, gas);
    const answer = await this.ask(({ api }) => api.submitSigned({ rawTransaction }, STICKLER));
    if (answer === null || this.isLate(answer)) return;
    const isPossible = gas === 21_000n;
    if (answer instanceof FencepostError) {
      const isOther = answer.code === "CONFLICT" && answer.extras.nextNonce !== nonce;
      const isRefused = answer.code === "SUBMISSION_REJECTED" && (!isPossible || isMarket(answer));
      if (!isOther && !isRefused) this.wrong(`bytes for nonce ${nonce} were answered ${String(answer)}`);
      return;
    }
    if (!isPossible) this.wrong(`bytes with ${gas} gas were accepted`);
    if (answer.nonce !== nonce) this.wrong(`bytes for nonce ${nonce} have nonce ${answer.nonce}`);
    this.count("own bytes submitted");
  }

  /** A key that may use every signer of the pool may use the pool; one that may use only some may not. */
  private async usePool(): Promise<void> {
    const members = this.world.ownSigners;
    const mayAll = this.dice.chance(0.5);
    const limits = { signers: new Set(mayAll ? members : members.slice(1)), chains: null };
    const answer = await this.create({ signer: { pool: POOL }, payload: this.payload() }, STICKLER, limits);
    if (answer === null || this.isLate(answer)) return;
    const isForbidden = answer instanceof FencepostError && answer.code === "FORBIDDEN";
    if (isForbidden === mayAll)
      this.wrong(`a key with ${limits.signers.size} signers got ${String(answer)} of the pool`);
    this.count(mayAll ? "pool used by a limited key" : "pool refused to a limited key");
  }

  /** A key with a small share of the queue asks for more than it may have, and repeats what it has. */
  private async fillShare(): Promise<void> {
    this.modest++;
    try {
      const signer = this.dice.pick(this.world.ownSigners);
      const most = this.dice.pick([1, 2]);
      const queueShare = most === 1 ? 0.0001 : Math.ceil((2 / this.queueLimit) * 10_000) / 10_000;
      const limits = { signers: null, chains: null, queueShare };
      const requests = Array.from({ length: 4 }, () => ({
        signer,
        requestId: `modest ${++this.serial}`,
        payload: this.payload(),
      }));
      const before = this.world.rows().filter(({ owner, lane }) => owner === MODEST && lane.signer === signer);
      const answers = await this.all(requests, limits);
      if (answers === null) this.isSure = false;
      const open = this.world.rows().filter((row) => row.owner === MODEST && row.lane.signer === signer);
      const waiting = open.filter(
        (row) => !isSettled(row.state) && row.subState !== "MINED" && !wasWithdrawn(row),
      ).length;
      if (answers === null) return;
      // The share of an earlier round was larger, at most by one.
      if (this.isSure && waiting > 2) this.wrong(`a key has ${waiting} creates in its share of ${most}`);
      const full = answers.filter((each) => each instanceof FencepostError && each.code === "QUOTA_EXCEEDED");
      if (this.isSure && before.length === 0 && full.length > requests.length - most)
        this.wrong(`an empty share of ${most} had no place for ${full.length} of ${requests.length}`);
      this.count(full.length > 0 ? "share of a queue full" : "share of a queue");
      await this.repeat(requests, answers, limits);
    } finally {
      this.modest--;
    }
  }

  /** Repeats of what was accepted are answered, however full the share is. */
  private async repeat(requests: readonly CreateRequest[], answers: readonly Answer[], limits: CreateLimits) {
    const made = requests.filter((_, at) => !(answers[at] instanceof FencepostError));
    const isFull = (each: Answer) => each instanceof FencepostError && each.code === "QUOTA_EXCEEDED";
    for (let attempt = 1; made.length > 0; attempt++) {
      const again = (await this.all(made, limits)) ?? [];
      const wrong = again.filter((each) => each instanceof FencepostError && !this.isLate(each) && !isFull(each));
      if (wrong.length > 0) this.wrong(`a repeat got ${wrong.join()}`);
      if (!again.some(isFull)) return;
      // A share may also be called full if the database did not answer about the request id.
      if (attempt === MOST_REPEATS) return this.wrong("repeats of what was accepted find their share full");
      await this.world.clock.sleep(1_000);
    }
  }

  private async all(requests: readonly CreateRequest[], limits: CreateLimits): Promise<readonly Answer[] | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const asked = this.dice.pick(nodes).node.api.createBatch(requests, MODEST, limits);
    return Promise.race([asked, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }

  private create(request: CreateRequest, owner = STICKLER, limits?: CreateLimits): Promise<Answer | null> {
    return this.ask(({ api }) => api.create(request, owner, limits));
  }

  /** Asks once. Null: no answer. */
  private async ask(call: (node: WorldNode["node"]) => Promise<Created>): Promise<Answer | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const answered = call(this.dice.pick(nodes).node).catch((error: unknown) => {
      if (error instanceof FencepostError) return error;
      this.wrong(`a stickler was answered ${String(error)}`);
      return null;
    });
    return Promise.race([answered, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }

  private async sign(signer: Address, nonce: number, gas: bigint): Promise<Hex> {
    const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
    const value = BigInt(FIRST_VALUE + ++this.serial * 10);
    const content = { to: TO, data: "0x", value, gas, fees, accessList: [] } as const;
    const [made] = await this.signer.sign(signer, [{ chainId: CHAIN_ID, nonce, ...content }]);
    return made?.rawTransaction as Hex;
  }

  private payload() {
    return { to: TO, value: FIRST_VALUE + ++this.serial * 10, gas: 21_000, ...FEES };
  }

  private cursorOf(signer: Address): number {
    return this.world.database.state.lane({ chainId: CHAIN_ID, signer })?.ledger.cursor ?? 0;
  }

  /** True for an answer that may be another one later. */
  private isLate(answer: Answer): boolean {
    return (
      answer instanceof FencepostError && (LATER.includes(answer.code) || answer.message.startsWith("validUntil: "))
    );
  }

  private wrong(what: string): void {
    this.absurd.push(what);
  }

  private count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
}

/** Reasons that may not hold any more once the transactions before are mined. */
const DEPENDING: readonly string[] = ["INSUFFICIENT_FUNDS", "REVERT", "NO_CODE"];
/** Reasons for which any request may be refused: the price that the market asks for. */
const MARKET: readonly string[] = ["FEE_TOO_LOW", "FEE_OVER_CEILING"];

/** True for what a reorg has made wait again, beyond any share. */
const wasWithdrawn = ({ history }: TransactionRow) =>
  history.some(({ event }) => event === "withdraw" || event === "reorg");

const isMarket = ({ extras, message }: FencepostError) =>
  MARKET.includes(extras.reason ?? "") || FALSE_REFUSAL.test(message);
