/** A mint queue: whichever signer of the pool has the shortest wait mints the ticket, and each ticket is minted once. */
import { type Address, FencepostError, type FencepostFace } from "fencepost";
import { TICKET_ABI, TICKET_BYTECODE } from "./ticket.ts";

export async function deploy(fencepost: FencepostFace, signer: Address, minters: readonly Address[]) {
  const payload = { bytecode: TICKET_BYTECODE, abi: TICKET_ABI, args: [minters] } as const;
  const sent = await fencepost.send({ signer, requestId: "deploy-ticket", payload });
  const { receipt } = await sent.mined();
  if (!receipt?.contractAddress) throw new Error(`the contract was not deployed: ${sent.id}`);
  return receipt.contractAddress;
}

/** The ticket's number is the request id: asked for twice, by two servers or after a crash, it is one mint. */
export async function mint(fencepost: FencepostFace, ticket: Address, to: Address, id: bigint) {
  const payload = { to: ticket, abi: TICKET_ABI, function: "mint", args: [to, id] } as const;
  return fencepost.send({ signer: { pool: "minters" }, requestId: `ticket-${id}`, payload });
}

/** What the contract would refuse is refused before it costs anything, by the names of its ABI. */
export function inWords(error: unknown): string {
  if (error instanceof FencepostError && error.revert) return `${error.revert.name}(${error.revert.args?.join(", ")})`;
  return String(error);
}
