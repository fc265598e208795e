import { FencepostError } from "../../../src/domain/errors.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Dice } from "../../../src/main/dev/chaos/dice.ts";
import { waitingIntake } from "../../doubles/memory-store/state.ts";
import type { World, WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Stops } from "./stops.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const LATE_MS = 20_000;
const LATER: readonly string[] = ["NOT_LEADER", "UNAVAILABLE"];

/** Simulated operators who put single transactions on hold, with or without a nonce, and release them after a while. */
export class Holders extends Actor {
  private readonly stops: Stops;

  constructor(world: World, dice: Dice, nodes: () => readonly WorldNode[], stops: Stops) {
    super(world, dice, nodes);
    this.stops = stops;
  }

  hold(): void {
    const { state } = this.world.database;
    const open = [...state.transactions.values()].filter((row) => !isSettled(row.state)).map(({ txId }) => txId);
    const ids = [...open, ...waitingIntake(state).map(({ intent }) => intent.txId)];
    if (ids.length > 0) this.begin(this.pause(this.dice.pick(ids)));
  }

  private async pause(txId: string): Promise<void> {
    const isDone = await this.act("suspend", txId);
    if (isDone === "done") this.stops.answered(`transaction ${txId}`);
    await this.world.clock.sleep(this.dice.int(100, 8_000));
    // A hold request without a response may still be carried out later. Wait, so that this cannot happen after the
    // release.
    if (isDone === null) await this.world.clock.sleep(LATE_MS);
    this.stops.lift(`transaction ${txId}`);
    while ((await this.act("resume", txId)) === null) {
      await this.world.clock.sleep(200);
      this.stops.lift(`transaction ${txId}`);
    }
  }

  /** Sends an action to any node. Returns null if the action was not carried out or its outcome is unknown. */
  private async act(action: "suspend" | "resume", txId: string): Promise<"done" | "over" | null> {
    const nodes = this.nodes();
    if (nodes.length === 0) return null;
    const { api } = this.dice.pick(nodes).node;
    const asked = api.act({ action, txId, request: { reason: action }, actor: "operator:holder" }).then(
      () => "done" as const,
      (error: unknown) => this.note(error),
    );
    return Promise.race([asked, this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null)]);
  }

  private note(error: unknown): "over" | null {
    const code = error instanceof FencepostError ? error.code : String(error);
    if (code === "CONFLICT") return "over";
    // The database has lost the transaction, which the checker compares with what it lost.
    if (code === "NOT_FOUND") this.absurd.push(`who holds a transaction was answered ${String(error)}`);
    if (code === "NOT_FOUND") return "over";
    if (!LATER.includes(code)) this.absurd.push(`who holds a transaction was answered ${String(error)}`);
    return null;
  }
}
