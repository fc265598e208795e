import type { Receipt } from "../../domain/transaction/transaction.ts";
import type { LanePorts } from "./lane-ports.ts";
import type { OwnedLane, Tracked } from "./owned-lane.ts";

/**
 * A receipt with the address that its deployment has: it follows from signer and nonce, and a caller who believed an
 * endpoint about it might send money to a contract of the endpoint's choice. A deployment that reverted left none, whatever the node
 * says of it.
 */
export function withOwnContract(
  { codec }: LanePorts,
  { lane }: OwnedLane,
  { nonce }: Tracked,
  receipt: Receipt,
): Receipt {
  const deployed = receipt.contractAddress !== null && receipt.status === "success";
  const contractAddress = deployed ? codec.contractAddress(lane.signer, nonce) : null;
  return contractAddress === receipt.contractAddress ? receipt : { ...receipt, contractAddress };
}
