/** `fencepost nonces`: reservations for callers that sign by themselves. */
import type { Command } from "commander";
import type { CreatedTransaction, NonceReservation } from "../../client/index.ts";
import { given } from "./answer.ts";
import { askNode, chainIdOption, type RemotePorts } from "./remote.ts";

interface ReserveOptions {
  readonly signer: string;
  readonly chainId?: number;
  readonly ttl?: string;
  readonly requestId?: string;
}

export function addNonces(program: Command, ports: RemotePorts): void {
  const nonces = program
    .command("nonces")
    .description("reserve nonces to sign with yourself, and report how they were used");
  const reserve = nonces.command("reserve").description("reserve the next nonce for a limited time");
  askNode(reserve, ports, {
    ask: (client) => {
      const { signer, chainId, ttl, requestId = ports.io.newId() } = reserve.opts<ReserveOptions>();
      return client.reserveNonce({ signer, requestId, ...given({ chainId, ttl }) });
    },
    show: reservationLines,
  })
    .requiredOption("--signer <address>", "its signer")
    .option("--ttl <duration>", "for how long, such as 5m; at most ten minutes")
    .option("--request-id <id>", "your own id: a repeat is the same reservation")
    .addOption(chainIdOption());
  const id = (command: Command) => command.argument("<reservationId>", "as reserve printed it");
  const show = nonces.command("show").description("print a reservation");
  id(askNode(show, ports, { ask: (client) => client.reservation(show.args[0] ?? ""), show: reservationLines }));
  const submit = nonces
    .command("submit")
    .description("submit the transaction that you signed: it is stored, sent and followed");
  id(
    askNode(submit, ports, {
      ask: (client) => client.submitReserved(submit.args[0] ?? "", submit.args[1] ?? ""),
      show: (created) => `accepted: ${followed(created)}`,
    }),
  ).argument("<rawTransaction>", "the signed bytes, 0x…");
  const used = nonces.command("used").description("report the transaction that you sent yourself: it is followed");
  id(
    askNode(used, ports, {
      ask: (client) => client.markUsed(used.args[0] ?? "", used.args[1] ?? ""),
      show: (created) => `followed: ${followed(created)}`,
    }),
  ).argument("<txHash>", "its hash");
  const release = nonces.command("release").description("give it back: nothing was signed with it");
  id(askNode(release, ports, { ask: (client) => client.releaseNonce(release.args[0] ?? ""), show: reservationLines }));
}

function reservationLines({ reservationId, chainId, signer, nonce, state, expiresAt, txId }: NonceReservation): string {
  const until = state === "RESERVED" ? ` until ${expiresAt}` : "";
  const transaction = txId === null ? "" : `\ntransaction ${txId}`;
  return `${reservationId}: nonce ${nonce} of ${signer} on chain ${chainId} is ${state}${until}${transaction}\n`;
}

function followed({ txId, nonce, state }: CreatedTransaction): string {
  return `transaction ${txId} (nonce ${nonce ?? "-"}) is ${state}\n`;
}
