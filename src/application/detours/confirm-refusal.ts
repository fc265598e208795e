/**
 * Before a refusal of the chain ends what was accepted: every endpoint that is up is asked for all that it says of the
 * transaction, and judged by the same rules as a create (domain/unconfirmed-refusal.ts says when that is enough).
 *
 * Reads: the chain. Writes: what the lane remembers of refusals that are not confirmed, in memory alone: a crash or a
 * takeover leaves the intent where it was, and its next owner begins again.
 */
import {
  judgeRefusal,
  type RefusalWord,
  stillUnconfirmed,
  type UnconfirmedRefusal,
} from "../../domain/chain/unconfirmed-refusal.ts";
import { type Heard, type Prospect, unlessSilent } from "../../ports/chain.ts";
import type { IntakeRow } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { isRefusedBy, questionOf } from "../stages/1-create/prepare.ts";

/** True where it may end. False: it waits, and is looked at again at a later block. */
export async function confirmRefusal(
  ports: Pick<Ports, "clock" | "telemetry">,
  context: ChainContext,
  lane: OwnedLane,
  { row: { intakeId, intent }, reason }: { readonly row: IntakeRow; readonly reason: string },
): Promise<boolean> {
  const block = context.follower.head?.number ?? 0;
  const answers = await unlessSilent(context.chain.prospects(questionOf(context, intent)), []);
  const words = answers.map((heard) => wordOf(heard, block, (prospect) => isRefusedBy(context, intent, prospect)));
  const seen = lane.refusals.of(intakeId);
  const verdict = judgeRefusal(words, block, seen);
  if (verdict === "confirmed") return true;
  const look = { txId: intent.txId, reason, waitsFor: verdict, since: ports.clock.now(), block };
  report(ports, lane, look);
  lane.refusals.note(intakeId, stillUnconfirmed(seen, look));
  return false;
}

function wordOf(heard: Heard<Prospect>, block: number, isRefused: (prospect: Prospect) => boolean): RefusalWord {
  if (heard.kind === "silent") return "silent";
  if (heard.answer.head.number < block) return "behind";
  return isRefused(heard.answer) ? "refuses" : "accepts";
}

/** Once for all of the lane: an endpoint that lies about one transaction lies about many. */
function report(
  { telemetry }: Pick<Ports, "telemetry">,
  { lane, refusals }: OwnedLane,
  { txId, reason, waitsFor }: Pick<UnconfirmedRefusal, "txId" | "reason" | "waitsFor">,
): void {
  if (waitsFor !== "agreement" || refusals.all.some((each) => each.waitsFor === waitsFor)) return;
  const message = `one endpoint of chain ${lane.chainId} refuses ${txId}, which was accepted, and another does not: it waits until they agree (${reason})`;
  telemetry.emit({ type: "alert", severity: "ERROR", code: "RPC_DISAGREES", message, lane, txId });
}
