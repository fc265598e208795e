/**
 * Beside stage 3: the one way to a signature. A signer that did not sign is left alone for a while, longer each time; that it is
 * away, or lies, is said once, and so is that it is back.
 *
 * Reads: nothing. Writes: nothing; what it signed is committed by whoever asked. Invariant I7: that a signer is silent decides
 * nothing about what it was to sign. A crash leaves nothing: unsent bytes have no effect, and the next owner has others made.
 */

import { signerAnswered, signerAwaited, signerFailed } from "../../../domain/pace/lane-pace.ts";
import { messageOf } from "../../../domain/text/thrown.ts";
import { type DeclaredPayload, type SignedTransaction, SignerAway, SigningRefused } from "../../../ports/signer.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import type { OwnedLane } from "../../lane/owned-lane.ts";
import { TermOver } from "../../lane/term.ts";
import { happened } from "../../lane/tracked.ts";

/** All of them, signed. Throws `SignerAway`, also without asking where it is too early for that; or `SigningRefused`. */
export async function askSigner(
  ports: LanePorts,
  lane: OwnedLane,
  unsigned: readonly DeclaredPayload[],
): Promise<readonly SignedTransaction[]> {
  const why = signerAwaited(lane.pace, ports.clock.monotonicMs());
  if (why !== null) throw new SignerAway(why);
  try {
    const signed = await lane.term.sign(() => ports.signer.sign(lane.lane.signer, unsigned, lane.fence.token));
    noteBack(ports, lane);
    return signed;
  } catch (error) {
    // Refused before the key was asked: that does not tell whether it would sign now.
    if (error instanceof TermOver || error instanceof SigningRefused) throw error;
    throw noteAway(ports, lane, error);
  }
}

function noteAway(ports: LanePorts, lane: OwnedLane, error: unknown): SignerAway {
  const { clock, entropy, telemetry } = ports;
  const reason = messageOf(error);
  const away = error instanceof SignerAway ? error : new SignerAway(reason, { cause: error });
  const { lies } = away;
  const { signer: before } = lane.pace;
  const isNews = before.kind === "there" || before.lies !== lies;
  const moment = { nowMs: clock.monotonicMs(), now: clock.now(), random: entropy.random() };
  happened(lane, signerFailed, { ...moment, reason, lies });
  if (isNews) {
    const what = lies ? "did not sign what it was asked to" : "cannot sign now, and is asked again";
    const message = `the signer of ${lane.lane.signer} ${what}: ${reason}`;
    const kind = lies ? ({ severity: "CRITICAL", code: "SIGNER_LIES" } as const) : SIGNER_AWAY;
    telemetry.emit({ type: "alert", ...kind, message, lane: lane.lane });
  }
  return away;
}

const SIGNER_AWAY = { severity: "ERROR", code: "SIGNER_AWAY" } as const;

function noteBack({ telemetry }: LanePorts, lane: OwnedLane): void {
  if (lane.pace.signer.kind === "there") return;
  happened(lane, signerAnswered);
  const message = `the signer of ${lane.lane.signer} signs again`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "SIGNER_BACK", message, lane: lane.lane });
}
