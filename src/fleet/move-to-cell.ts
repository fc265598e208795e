import { pause } from "../client/deadline.ts";
import { FencepostError, invalidArgument } from "../client/error-classes.ts";
import type { FencepostFace } from "../client/face.ts";
import type { Address } from "../client/hex.ts";
import type { LaneMove, MoveSigner } from "../contract/schemas/lane-move.ts";
import type { SignerLane } from "../contract/schemas/signers.ts";

/** The calls that a move makes at each of the two cells. */
type Cell = Pick<FencepostFace, "moveSigner" | "signer">;

export interface SignerMove {
  /** Cell that the signer leaves. Its API key needs `admin`, as that of the other cell does. */
  readonly from: Cell;
  readonly to: Cell;
  readonly signer: Address;
  /** Required if several chains are configured. */
  readonly chainId?: number;
  /** Why; kept in the history of both cells. */
  readonly reason: string;
  /** Called while the signer still has something open at the cell that it leaves. */
  readonly onWait?: (leaving: LaneMove) => void;
  /** Pause in ms between two looks at a signer that is leaving; default 1,000. */
  readonly pollIntervalMs?: number;
  readonly signal?: AbortSignal;
}

/**
 * Moves a signer to another cell, and resolves with its lane there. Between the first and the last step new requests are
 * refused at both cells. After a failure, a crash or an abort, repeat it: it goes on where it stopped.
 */
export async function moveToCell(move: SignerMove): Promise<SignerLane> {
  const { from, to } = move;
  const [here, there] = await Promise.all([laneAt(from, move), laneAt(to, move)]);
  // The last step of an earlier call was made, and its answer was lost.
  if (here?.place === "LEFT" && there?.place === "HERE") return there;
  await handOver(move);
  const arrived = await laneAt(to, move);
  if (arrived === undefined) throw invalidArgument("to", `does not list ${move.signer}: its API key may not see it`);
  return arrived;
}

async function laneAt(cell: Cell, { signer, chainId, signal }: SignerMove): Promise<SignerLane | undefined> {
  const lanes = await cell.signer(signer, signal && { signal }).catch((error) => {
    // A cell that never had the signer's key does not know it.
    if (error instanceof FencepostError && error.code === "UNKNOWN_SIGNER") return [];
    throw error;
  });
  return lanes.find((lane) => chainId === undefined || lane.chainId === chainId);
}

async function handOver({ from, to, signer, reason, signal, ...move }: SignerMove): Promise<void> {
  const said = { reason, ...(move.chainId !== undefined && { chainId: move.chainId }) };
  const step = (cell: Cell, order: Omit<MoveSigner, "reason">) =>
    cell.moveSigner(signer, { ...order, ...said }, signal && { signal });
  const { moveId } = await step(to, { step: "expect" });
  const leave = { step: "leave", ...(moveId !== null && { moveId }) } as const;
  let left = await step(from, leave);
  while (left.place === "LEAVING") {
    move.onWait?.(left);
    await pause(move.pollIntervalMs ?? 1_000, signal);
    left = await step(from, leave);
  }
  while (left.page !== undefined) {
    const { place, after } = await step(to, { step: "arrive", page: left.page });
    if (place === "HERE") return;
    left = await step(from, { ...leave, ...(after !== null && { after }) });
  }
}
