import type { AlertCode } from "../../domain/alerts.ts";
import { type FeeLimit, limitInWords } from "../../domain/ceilings.ts";
import type { LaneWriterPorts } from "./lane-writer.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { establish, type FactCode, type Tracked } from "./tracked.ts";

/** Notes what a transaction is held up by, and says it aloud the first time. */
export function hold(
  ports: Pick<LaneWriterPorts, "clock" | "telemetry">,
  { lane, tx }: { readonly lane: OwnedLane; readonly tx: Tracked },
  { code, text }: { readonly code: FactCode & AlertCode; readonly text: string },
): void {
  if (!establish(tx, code, { text, since: ports.clock.now() })) return;
  const message = `nonce ${tx.nonce} of ${lane.lane.signer}: ${text}; it is still tracked and sent`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code, message, lane: lane.lane, txId: tx.txId });
}

/** The first price of what was just signed would have been higher but for a ceiling. */
export function holdAtCeiling(
  ports: Pick<LaneWriterPorts, "clock" | "telemetry">,
  held: { readonly lane: OwnedLane; readonly tx: Tracked },
  reached: FeeLimit,
): void {
  const text = `its fee is at ${limitInWords(reached)}, and more was wanted`;
  hold(ports, held, { code: "FEE_CEILING_REACHED", text });
}
