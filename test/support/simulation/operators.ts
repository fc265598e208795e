import type { LaneAction, TransactionAction } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Stops } from "./stops.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const LATE_MS = 20_000;
/**
 * First value of the operators' payloads, far from those of callers and reservers, so that a payload shows its sender.
 */
const FIRST_VALUE = 50_000_000;
/** Error codes that an operator may get although no node is at fault. */
const EXPECTED: readonly string[] = ["CONFLICT", "NOT_LEADER", "UNAVAILABLE", "SUBMISSION_REJECTED", "INVALID_REQUEST"];
/** Rules that forbid an operator's payload or price: those of the API key that sent the transaction. */
const OF_KEYS = /^key\./;

/** Simulated operators who act on transactions through any node they reach, and rely on its responses. */
export class Operators extends Actor {
  /** Actions that a node reported as done: each must be in the transaction's history. */
  readonly obeyed: { readonly action: TransactionAction; readonly txId: string; readonly reason: string }[] = [];
  /** Reasons of actions that were sent more than once under one idempotency key. */
  readonly keyed = new Set<string>();
  private serial = 0;
  private readonly stops: Stops;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], stops: Stops) {
    super(world, dice, nodes);
    this.stops = stops;
  }

  /** Sends an operator's action for a random transaction that is not final yet. */
  act(): void {
    const rows = [...this.world.database.state.transactions.values()].filter((row) => !isSettled(row.state));
    if (rows.length > 0) this.begin(this.give(this.dice.pick(rows)));
  }

  /** Suspends a signer for a while; the same operator resumes it. */
  suspend(): void {
    this.begin(this.pause(this.dice.pick(SIGNERS)));
  }

  private async give({ txId }: TransactionRow): Promise<void> {
    // An operator's action is carried out even if the transaction is on hold. So from here on, the check of stops must
    // allow a send.
    this.stops.lift(`transaction ${txId}`);
    const reason = `order ${++this.serial}`;
    const { action, fields } = this.deed();
    const request = { reason, ...fields };
    const key = this.dice.chance(0.5) ? { idempotencyKey: reason } : {};
    const act = () => this.ask(({ node }) => node.api.act({ action, txId, request, actor: "operator:sim", ...key }));
    const answer = await act();
    if (answer !== null) this.obeyed.push({ action, txId, reason });
    if (key.idempotencyKey === undefined || this.dice.chance(0.5)) return;
    // Repeated under its key, an action is not carried out again.
    this.keyed.add(reason);
    await this.world.clock.sleep(this.dice.int(0, 3_000));
    this.stops.lift(`transaction ${txId}`);
    await act();
  }

  private deed(): { readonly action: TransactionAction; readonly fields: object } {
    const payload = { to: TO, value: FIRST_VALUE + this.serial * 10, gas: 21_000 };
    return this.dice.weighted([
      [3, { action: "cancel", fields: {} }],
      [3, { action: "replace", fields: { payload } }],
      [2, { action: "reprice", fields: {} }],
      [2, { action: "resubmit", fields: {} }],
      [1, { action: "resolve", fields: { action: "CANCEL" } }],
      [1, { action: "resolve", fields: { action: "NOOP" } }],
      [1, { action: "resolve", fields: { action: "REPLACE", payload } }],
    ]);
  }

  private async pause(signer: string): Promise<void> {
    const key = { idempotencyKey: `pause ${++this.serial}` };
    const act = (action: LaneAction, request: object = {}, keyed = {}) =>
      this.ask(({ node }) => {
        const asked = { action, signer, request: { reason: "r", ...request }, actor: "operator:sim" };
        return node.api.actOnLane({ ...asked, ...keyed });
      });
    const subject = `signer ${signer}`;
    const isDone = (await act("suspend", {}, key)) !== null;
    if (isDone) this.stops.answered(subject);
    if (this.dice.chance(0.5)) await this.realign(act);
    await this.world.clock.sleep(this.dice.int(100, 5_000));
    // A suspension without a response may still be carried out later. Wait, so that this cannot happen after the
    // resumption.
    if (!isDone) await this.world.clock.sleep(LATE_MS);
    // The request to suspend may or may not have been carried out. The request to resume must be carried out in any
    // case.
    this.stops.lift(subject);
    while ((await act("resume")) === null) {
      await this.world.clock.sleep(200);
      this.stops.lift(subject);
    }
    // Repeated late under its key, the suspension is not carried out again.
    if (isDone && this.dice.chance(0.5)) await act("suspend", {}, key);
  }

  /** States that the next nonce is too high; half of the time twice under one key. */
  private async realign(act: (action: LaneAction, request: object, keyed: object) => Promise<unknown>): Promise<void> {
    const request = { nonce: this.dice.int(0, 6) };
    const keyed = this.dice.chance(0.5) ? { idempotencyKey: `realign ${++this.serial}` } : {};
    await act("realign", request, keyed);
    if ("idempotencyKey" in keyed) await act("realign", request, keyed);
  }

  /** Returns null if the action was not carried out or its outcome is unknown. */
  private async ask<T>(ask: (node: WorldNode) => Promise<T>): Promise<T | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null);
    return Promise.race([ask(this.dice.pick(nodes)).catch((error: unknown) => this.note(error)), timeout]);
  }

  private note(error: unknown): null {
    const code = error instanceof FencepostError ? error.code : String(error);
    const rule = error instanceof FencepostError ? String(error.extras.rule) : "";
    if (code === "FORBIDDEN" && OF_KEYS.test(rule)) return null;
    if (!EXPECTED.includes(code)) this.absurd.push(`an operator was answered ${String(error)}`);
    return null;
  }
}
