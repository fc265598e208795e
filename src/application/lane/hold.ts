import { type FeeLimit, limitInWords } from "../../domain/fees/ceilings.ts";
import type { AlertCode } from "../../domain/troubles/table.ts";
import type { LaneWriterPorts } from "./lane-writer.ts";
import type { OwnedLane } from "./owned-lane.ts";
import { establish, type FactCode, type Tracked } from "./tracked.ts";

type HoldPorts = Pick<LaneWriterPorts, "clock" | "telemetry">;
type Obstacle = { readonly code: FactCode & AlertCode; readonly text: string };

/** Notes what a transaction is held up by, and says it aloud the first time. */
export function hold(ports: HoldPorts, { lane }: OwnedLane, tx: Tracked, { code, text }: Obstacle): void {
  if (!establish(tx, code, { text, since: ports.clock.now() })) return;
  const message = `nonce ${tx.nonce} of ${lane.signer}: ${text}; it is still tracked and sent`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code, message, lane, txId: tx.txId });
}

/** The first price of what was just signed would have been higher but for a ceiling. */
export function holdAtCeiling(ports: HoldPorts, lane: OwnedLane, tx: Tracked, reached: FeeLimit): void {
  const text = `its fee is at ${limitInWords(reached)}, and more was wanted`;
  hold(ports, lane, tx, { code: "FEE_CEILING_REACHED", text });
}
