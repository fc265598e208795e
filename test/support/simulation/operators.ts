import type { TransactionAction } from "../../../src/application/api.ts";
import { FencepostError } from "../../../src/domain/errors.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { SIGNERS, TO, type World, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Dice } from "./dice.ts";
import type { Stops } from "./stops.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const LATE_MS = 20_000;
/** Values far from those of callers and reservers, so that a payload shows its sender. */
const FIRST_VALUE = 50_000_000;
/** Refusals that an operator may be given though no node made a mistake. */
const EXPECTED: readonly string[] = ["CONFLICT", "NOT_LEADER", "UNAVAILABLE", "SUBMISSION_REJECTED", "INVALID_REQUEST"];

/** People who act on what they see, on any node they reach, and trust its answers. */
export class Operators extends Actor {
  /** Orders that were answered: each must be in the history. */
  readonly obeyed: { readonly action: TransactionAction; readonly txId: string; readonly reason: string }[] = [];
  private serial = 0;
  private readonly stops: Stops;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], stops: Stops) {
    super(world, dice, nodes);
    this.stops = stops;
  }

  /** One action on one transaction that is not final, as far as the operator can see. */
  order(): void {
    const rows = [...this.world.database.state.transactions.values()].filter((row) => !isSettled(row.state));
    if (rows.length > 0) this.begin(this.give(this.dice.pick(rows)));
  }

  /** A signer is suspended for a while; the operator who did it resumes it. */
  suspend(): void {
    this.begin(this.pause(this.dice.pick(SIGNERS)));
  }

  private async give({ txId }: TransactionRow): Promise<void> {
    // An operator's action on a held transaction is carried out, once.
    this.stops.lift(`transaction ${txId}`);
    const reason = `order ${++this.serial}`;
    const { action, fields } = this.deed();
    const request = { reason, ...fields };
    const answer = await this.ask(({ node }) => node.api.act({ action, txId, request, actor: "operator:sim" }));
    if (answer !== null) this.obeyed.push({ action, txId, reason });
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
    const order = (action: "suspend" | "resume") =>
      this.ask(({ node }) => node.api.actOnLane({ action, signer, request: { reason: "r" }, actor: "operator:sim" }));
    const subject = `signer ${signer}`;
    const isDone = (await order("suspend")) !== null;
    if (isDone) this.stops.answered(subject);
    await this.world.clock.sleep(this.dice.int(100, 5_000));
    // An action without an answer may be carried out late, and must not come after the action that ends it.
    if (!isDone) await this.world.clock.sleep(LATE_MS);
    // The first may or may not have been carried out; the second must be.
    this.stops.lift(subject);
    while ((await order("resume")) === null) {
      await this.world.clock.sleep(200);
      this.stops.lift(subject);
    }
  }

  /** Null: not done, or unknown. */
  private async ask<T>(ask: (node: WorldNode) => Promise<T>): Promise<T | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null);
    return Promise.race([ask(this.dice.pick(nodes)).catch((error: unknown) => this.note(error)), timeout]);
  }

  private note(error: unknown): null {
    const code = error instanceof FencepostError ? error.code : String(error);
    if (!EXPECTED.includes(code)) this.absurd.push(`an operator was answered ${String(error)}`);
    return null;
  }
}
