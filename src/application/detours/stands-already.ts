/**
 * Whether what an operator asks for is what stands already: an order that is repeated because its answer was lost must not
 * be signed, and paid for, twice. Dearer fees, named, are another order.
 *
 * Reads: the bytes of the newest attempt. Writes: nothing. A crash here leaves nothing behind.
 */
import { isSendable, repricedKind } from "../../domain/transaction/attempts.ts";
import { type Fees, type FeeWishes, feeCap } from "../../domain/transaction/fees.ts";
import type { Payload } from "../../domain/transaction/transaction.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import { decodedNewest, type Tracked } from "../lane/tracked.ts";
import type { PayloadChange } from "./change-payload.ts";

/** Of one that is tracked: what was STUCK in the meantime is asked for anew. */
export async function standsAlready(ports: LanePorts, tx: Tracked, change: PayloadChange): Promise<boolean> {
  const newest = tx.attempts.findLast(isSendable);
  if (newest === undefined || tx.attempts.length < 2 || tx.status.state !== "TRACKING") return false;
  if (!isOffered(newest.fees, change.fees, change.kind === "reprice")) return false;
  const standing = repricedKind(tx.attempts);
  if (change.kind === "cancel") return standing === "cancel" || standing === "placeholder";
  if (change.kind === "replace" && change.payload !== undefined) {
    return standing === "replace" && (await saysTheSame(ports, tx, change.payload));
  }
  return change.kind === "reprice" && Object.keys(change.fees).length > 0;
}

/** Every fee that is named: as much, or exactly as much where the fee is all that is asked for. */
function isOffered(fees: Fees, wishes: FeeWishes, exactly: boolean): boolean {
  const { type, gasPrice, maxFeePerGas, maxPriorityFeePerGas } = wishes;
  const tip = fees.type === "eip1559" ? fees.maxPriorityFeePerGas : fees.gasPrice;
  const isCovered = (wish: bigint | undefined, offered: bigint): boolean =>
    wish === undefined || (exactly ? wish === offered : wish <= offered);
  const isDynamic = maxFeePerGas !== undefined || maxPriorityFeePerGas !== undefined;
  if ((type !== undefined && type !== fees.type) || (isDynamic && fees.type !== "eip1559")) return false;
  if (gasPrice !== undefined && fees.type === "eip1559") return false;
  return isCovered(gasPrice ?? maxFeePerGas, feeCap(fees)) && isCovered(maxPriorityFeePerGas, tip);
}

/** The newest bytes say what this payload says; what it leaves open was decided then. */
export async function saysTheSame(ports: LanePorts, tx: Tracked, payload: Payload): Promise<boolean> {
  const unsigned = (await decodedNewest(ports, tx))?.unsigned;
  if (unsigned?.to !== payload.to || unsigned.data !== payload.data || unsigned.value !== payload.value) return false;
  const { gas = unsigned.gas, accessList = unsigned.accessList } = payload;
  return gas === unsigned.gas && JSON.stringify(accessList) === JSON.stringify(unsigned.accessList);
}
