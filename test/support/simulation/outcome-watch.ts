import type { TelemetryEvent } from "../../../src/ports/telemetry.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import type { World, WorldNode } from "../world.ts";

const SENDS_ANSWERED: readonly string[] = ["broadcast", "submitFailed"];
const REJECTIONS = 2;
/** Words in a reason that show a mistake of the program. */
const MISTAKE = /undefined|NaN|notStarted|\[object/;

/**
 * Checks what rows say against the chain: a transaction is called confirmed only if what its caller asked for was mined
 * at its own nonce; nothing is said about sends of what is mined already; reasons are in words; and one refusal by a
 * node is not called a refusal for good.
 */
export class OutcomeWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly rejections = new Map<string, number>();

  constructor(world: World) {
    this.world = world;
  }

  happened(node: WorldNode | null, event: TelemetryEvent): void {
    if (event.type === "submit.answered" && event.answer === "rejected")
      this.rejections.set(event.txId, (this.rejections.get(event.txId) ?? 0) + 1);
    if (event.type !== "alert" || event.code !== "TX_REFUSED") return;
    const seen = this.rejections.get(event.txId ?? "") ?? 0;
    if (seen < REJECTIONS)
      this.violations.push(`${node?.url} calls ${event.txId} refused for good after ${seen} answers`);
  }

  /** What was mined, compared with what was asked for. Call this at rest. */
  settled(): readonly string[] {
    return [...this.violations, ...this.world.rows().flatMap((row) => this.differences(row))];
  }

  private differences(row: TransactionRow): readonly string[] {
    const { txId, lane, nonce, receipt, attempts, state, history, payload } = row;
    const unclear = history.find(({ reason }) => MISTAKE.test(reason ?? ""));
    const words = unclear === undefined ? [] : [`${txId} says: ${unclear.reason}`];
    const said = history.find(
      ({ event }, index) => SENDS_ANSWERED.includes(event) && history[index - 1]?.event === "mine",
    );
    if (said !== undefined) words.push(`${said.event} of ${txId} was written after it was mined`);
    const mined = receipt === null ? null : this.world.chain.transaction(receipt.txHash);
    if (mined === null) return words;
    const attempt = attempts.find(({ txHash }) => txHash === mined.hash);
    if (mined.from !== lane.signer || mined.nonce !== nonce)
      return [...words, `${txId} rests on ${mined.hash}, nonce ${mined.nonce} of ${mined.from}`];
    const isAsked = mined.to === payload.to && mined.value === payload.value && mined.data === payload.data;
    const isOwn = attempt !== undefined && (attempt.kind === "initial" || attempt.kind === "reprice");
    if (state !== "CONFIRMED" || !isOwn || isAsked || row.change !== undefined) return words;
    return [...words, `${txId} is confirmed, and ${mined.value} wei to ${mined.to} were mined`];
  }
}
