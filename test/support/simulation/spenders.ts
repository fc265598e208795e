import { serializeTransaction } from "viem/utils";
import { FencepostError } from "../../../src/domain/errors.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { waitingIntake } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import { FALSE_REFUSAL } from "./callers.ts";
import {
  CLOSED_POLICIES,
  drawBlob,
  drawSpend,
  FEE,
  requestOf,
  SHOP,
  SPENDING_POLICIES,
  type Spend,
  type Verdict,
  verdictOf,
} from "./spend-kinds.ts";
import { SPENT, SpendWatch } from "./spend-watch.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const PATIENCE = 20;
const LATER: readonly string[] = ["UNAVAILABLE", "NOT_LEADER", "QUEUE_FULL", "QUOTA_EXCEEDED"];
/** Rules of which a refusal depends on what was spent before. */
const WINDOWS = /\.per(Hour|Day)$/;

type Ask = (api: WorldNode["node"]["api"]) => Promise<unknown>;

/**
 * Simulated API keys with policies that send at the bounds of what they may, and beyond; and people who approve, reject
 * and change the policies for a while.
 */
export class Spenders extends Actor {
  readonly watch: SpendWatch;
  private serial = 0;
  private isChanging = false;
  /** True once the shop may have been forbidden what it sends. */
  private wasClosed = false;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[]) {
    super(world, dice, nodes);
    this.watch = new SpendWatch(world);
  }

  /** What may happen in one step of a simulation. */
  step(): void {
    const { dice } = this;
    if (dice.chance(0.6)) this.spend();
    if (dice.chance(0.15)) this.replace();
    if (dice.chance(0.15)) this.begin(this.submit());
    if (dice.chance(0.2)) this.decide();
    if (dice.chance(0.02)) this.close();
  }

  private spend(): void {
    const spend = drawSpend(this.dice);
    const request = requestOf(spend, `${SPENT}${++this.serial}`);
    this.begin(this.follow(spend, (api) => api.create(request, spend.owner)));
  }

  /** Gives one of the spenders' transactions another payload of the same key. */
  private replace(): void {
    const open = this.world.rows().filter(({ state, requestId }) => isOpen(state) && requestId?.startsWith(SPENT));
    if (open.length === 0) return;
    const { txId, lane, owner } = this.dice.pick(open);
    const drawn = drawSpend(this.dice);
    const spend = { ...drawn, signer: lane.signer, owner: owner ?? "" };
    const { payload } = requestOf(spend, "");
    const request = { reason: "another payload", payload };
    this.begin(
      this.follow(spend, (api) => api.act({ action: "replace", txId, request, actor: "operator:spender" }), 1),
    );
  }

  /** Reserves a nonce and submits bytes for it that the key may send, or may not; or forgets it. */
  private async submit(): Promise<void> {
    const spend = this.dice.chance(0.4) ? drawBlob(this.dice) : drawSpend(this.dice);
    const serial = ++this.serial;
    if (this.world.nodeSigners.includes(spend.signer)) return;
    const request = { signer: spend.signer, ttl: "3s", requestId: `reserved ${serial}` };
    const reserved = await this.once((api) => api.reserveNonce(request, spend.owner));
    if (typeof reserved !== "object" || reserved === null || this.dice.chance(0.3)) return;
    const { reservation } = reserved as Awaited<ReturnType<WorldNode["node"]["api"]["reserveNonce"]>>;
    const rawTransaction = this.sign(spend, reservation.nonce);
    await this.follow(spend, (api) => api.submitReserved(reservation.reservationId, { rawTransaction }));
  }

  /** Signs as `FakeSigner` would if it supported blobs. */
  private sign({ signer, payload }: Spend, nonce: number): Hex {
    const { to, data, value, gas, blobFeeCap } = payload;
    const fees = { maxFeePerGas: FEE, maxPriorityFeePerGas: 1_000_000_000n };
    const content = { chainId: CHAIN_ID, nonce, to, data: data.toLowerCase() as Hex, value, gas, ...fees };
    const s: Hex = `0x${(this.serial + 1).toString(16).padStart(64, "0")}`;
    const signature = { r: `0x${signer.slice(2).padStart(64, "0")}`, s, yParity: 0 } as const;
    if (blobFeeCap === undefined) return serializeTransaction({ type: "eip1559", ...content }, signature);
    const blobs = { maxFeePerBlobGas: blobFeeCap, blobVersionedHashes: [`0x01${"00".repeat(31)}` as Hex] };
    return serializeTransaction({ type: "eip4844", ...content, ...blobs }, signature);
  }

  private decide(): void {
    const { state } = this.world.database;
    const waiting = waitingIntake(state).flatMap(({ approval, intent }) => (approval === null ? [] : intent.txId));
    if (waiting.length === 0) return;
    const asked = { txId: this.dice.pick(waiting), request: { reason: "second" }, actor: "operator:second" };
    const action = this.dice.pick(["approve", "approve", "reject"] as const);
    this.begin(this.once((api) => api.act({ ...asked, action })).then(() => undefined));
  }

  /** Changes the policies for a while: to stricter ones, or to ones that only a newer release can read. */
  private close(): void {
    if (this.isChanging) return;
    this.isChanging = true;
    this.begin(this.closeFor(this.dice.int(500, 5_000)).finally(() => (this.isChanging = false)));
  }

  private async closeFor(ms: number): Promise<void> {
    this.wasClosed = true;
    const put = (policies: unknown) =>
      this.once((api) => api.applyPolicies({ policies, reason: "drill" }, "operator:rules"));
    const isDone = (answer: unknown) => typeof answer === "object" && answer !== null;
    if (this.dice.chance(0.4)) {
      this.world.database.applyUnreadable();
      this.watch.isUnreadable = true;
    } else if (isDone(await put(CLOSED_POLICIES.document))) this.watch.closedSince = this.world.clock.monotonicMs();
    await this.world.clock.sleep(ms);
    this.watch.closedSince = null;
    this.watch.isUnreadable = false;
    while (!isDone(await put(SPENDING_POLICIES.document))) await this.world.clock.sleep(200);
  }

  /** Repeats a request until it has a final answer, which the policies must explain. */
  private async follow(spend: Spend, ask: Ask, patience = PATIENCE): Promise<void> {
    for (let attempt = 0; attempt < patience; attempt++) {
      if (attempt > 0) await this.world.clock.sleep(this.dice.int(100, 1_500));
      const before = verdictOf(spend, this.world.clock.now());
      const answer = await this.once(ask);
      if (answer === null) continue;
      // A repeat may be answered with what an earlier try has made, at another time of day.
      const verdict = attempt === 0 && before === verdictOf(spend, this.world.clock.now()) ? before : null;
      return this.judge(spend, verdict, answer);
    }
  }

  private judge(spend: Spend, verdict: Verdict | null, answer: unknown): void {
    const what = `${spend.owner} with ${describe(spend)}`;
    if (!(answer instanceof FencepostError)) {
      if (verdict === "allowed" && this.waitsForApproval(answer))
        this.absurd.push(`${what} waits for an approval that no policy asks for`);
      if (verdict === "never") this.absurd.push(`${what} was accepted, and a policy forbids it`);
      return;
    }
    const { code, message, extras } = answer;
    if (code !== "FORBIDDEN") {
      const isOver = code === "CONFLICT" || code === "NOT_FOUND" || code === "INVALID_REQUEST";
      const isMarket = code === "SUBMISSION_REJECTED" && (FALSE_REFUSAL.test(message) || MARKET.test(message));
      if (!isOver && !isMarket) this.absurd.push(`${what} was answered ${String(answer)}`);
      return;
    }
    const rule = String(extras.rule ?? "");
    const isFull = WINDOWS.test(rule);
    this.watch.count(isFull ? "spending beyond a window" : `spending refused: ${rule}`);
    const isClosed = spend.owner === SHOP && this.wasClosed && rule === "key.to";
    const isSmall = isFull && spend.payload.value === 0n && rule.includes("maxValue");
    if (isSmall || (verdict === "allowed" && !isFull && !isClosed))
      this.absurd.push(`${what} was forbidden by ${rule}`);
  }

  private waitsForApproval(answer: unknown): boolean {
    const { txId } = answer as { readonly txId?: string };
    return waitingIntake(this.world.database.state).some(
      ({ intent, approval }) => intent.txId === txId && approval?.approved === false,
    );
  }

  /** Asks once. Null: no answer, or one that may change. An error is returned. */
  private async once(ask: Ask): Promise<unknown> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const answered = ask(this.dice.pick(nodes).node.api).catch((error: unknown) => {
      if (error instanceof FencepostError) return LATER.includes(error.code) ? null : error;
      this.absurd.push(`a spender was answered ${String(error)}`);
      return null;
    });
    return Promise.race([answered, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }
}

/** Refusals of a create at the price that the market asks for, or because of gas or fees above a ceiling. */
const MARKET = /base fee|ceiling|gas/;

const isOpen = (state: Parameters<typeof isSettled>[0]) => !isSettled(state);

function describe({ payload: { to, data, value } }: Spend): string {
  return `${value} to ${to} with ${data}`;
}
