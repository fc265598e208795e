import { FencepostError } from "../../../src/domain/errors.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import { SIGNERS, TO, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";

const CLIENT_TIMEOUT_MS = 3_000;
/** First value of the payers' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 70_000_000;
/** Name of the API key of payers that trust the market. */
export const PAYER = "payer";
/** Error codes that a payer may get although no node is at fault. */
const EXPECTED: readonly string[] = ["CONFLICT", "NOT_LEADER", "UNAVAILABLE", "QUEUE_FULL"];

/**
 * Simulated callers. Some leave the price to the market. Others name a price above the ceiling, which no node may sign.
 */
export class Payers extends Actor {
  refused = 0;
  private serial = 0;

  /** Sends a transaction at whatever price the market asks for. */
  trust(): void {
    this.start(({ node }) => node.api.create(this.request({}), PAYER), ["SUBMISSION_REJECTED"]);
  }

  /** Sends a transaction, a reprice or a cancel with a price above every ceiling. */
  overpay(): void {
    const deed = this.dice.pick([
      async ({ node }: WorldNode) => this.taken(await node.api.create(this.request(this.tooMuch))),
      (entry: WorldNode) => this.act(entry, "reprice"),
      (entry: WorldNode) => this.act(entry, "cancel"),
    ]);
    this.start(deed, []);
  }

  private start(ask: (node: WorldNode) => Promise<unknown>, expected: readonly string[]): void {
    const nodes = this.nodes();
    if (nodes.length === 0) return;
    const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS);
    const answer = ask(this.dice.pick(nodes)).catch((error: unknown) => this.note(error, expected));
    this.begin(Promise.race([answer, timeout]).then(() => undefined));
  }

  private request(fees: object) {
    const value = FIRST_VALUE + ++this.serial * 10;
    return { signer: this.dice.pick(SIGNERS), payload: { to: TO, value, gas: 21_000, ...fees } };
  }

  private get tooMuch() {
    const most = this.world.ceilings.feePerGas;
    return { maxFeePerGas: String(most * 2n), maxPriorityFeePerGas: String(most) };
  }

  private async act({ node }: WorldNode, action: "reprice" | "cancel"): Promise<void> {
    const rows = [...this.world.database.state.transactions.values()].filter((row) => !isSettled(row.state));
    if (rows.length === 0) return;
    const { txId } = this.dice.pick(rows);
    const request = { reason: "whatever it costs", ...this.tooMuch };
    this.taken(await node.api.act({ action, txId, request, actor: "operator:sim" }));
  }

  private taken({ txId }: { readonly txId: string }): void {
    this.absurd.push(`fees above the ceiling were taken for ${txId}`);
  }

  private note(error: unknown, expected: readonly string[]): void {
    const { code, extras } = error instanceof FencepostError ? error : { code: String(error), extras: null };
    if (extras?.reason === "FEE_OVER_CEILING") this.refused++;
    else if (![...EXPECTED, ...expected].includes(code)) this.absurd.push(`a payer was answered ${String(error)}`);
  }
}
