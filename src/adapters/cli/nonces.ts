/** `fencepost nonces`: reserves nonces for callers that sign their transactions themselves. */
import type { Command } from "commander";
import type { CreatedTransaction, NonceReservation, ReserveNonce } from "../../client/index.ts";
import { askNode, CHAIN_ID, type RemotePorts } from "./remote.ts";
import { dated, indented } from "./shorten.ts";
import type { View } from "./terminal.ts";

export function addNonces(program: Command, ports: RemotePorts): void {
  const nonces = program
    .command("nonces")
    .description("reserve nonces to sign with yourself, and report how they were used");
  askNode(nonces.command("reserve").description("reserve the next nonce for a limited time"), ports, {
    ask: (client, lane: ReserveNonce) => client.reserveNonce({ requestId: ports.io.newId(), ...lane }),
    show: reservationLines,
  })
    .requiredOption("--signer <address>", "its signer")
    .option("--ttl <duration>", "for how long, such as 5m; at most ten minutes")
    .option("--request-id <id>", "your own id: a repeat is the same reservation")
    .addOption(CHAIN_ID);
  const onReservation = (command: Command, description: string) =>
    command.description(description).argument("<reservationId>", "as reserve printed it");
  askNode(onReservation(nonces.command("show"), "print a reservation"), ports, {
    ask: (client, _, id) => client.reservation(id),
    show: reservationLines,
  });
  askNode(
    onReservation(nonces.command("submit"), "submit the transaction that you signed: it is stored, sent and followed"),
    ports,
    {
      ask: (client, _, id, rawTransaction) => client.submitReserved(id, rawTransaction),
      show: (created, view) => followed("accepted", created, view),
    },
  ).argument("<rawTransaction>", "the signed bytes, 0x…");
  askNode(
    onReservation(nonces.command("used"), "report the transaction that you sent yourself: it is followed"),
    ports,
    {
      ask: (client, _, id, txHash) => client.markUsed(id, txHash),
      show: (created, view) => followed("followed", created, view),
    },
  ).argument("<txHash>", "its hash");
  askNode(onReservation(nonces.command("release"), "give it back: nothing was signed with it"), ports, {
    ask: (client, _, id) => client.releaseNonce(id),
    show: reservationLines,
  });
}

function reservationLines(reservation: NonceReservation, view: View) {
  const { reservationId, chainId, signer, nonce, state, expiresAt, txId } = reservation;
  const until = state === "RESERVED" ? ` until ${dated(expiresAt, view)}` : "";
  const transaction = txId === null ? "" : `\ntransaction ${txId}`;
  const line = `${reservationId}: nonce ${nonce} of ${signer} on chain ${chainId} is ${state}${until}`;
  return `${indented("", line, view)}${transaction}\n`;
}

function followed(what: string, { txId, nonce, state }: CreatedTransaction, view: View) {
  return `${indented("", `${what}: transaction ${txId} (nonce ${nonce ?? "-"}) is ${state}`, view)}\n`;
}
