/** `fencepost nonces`: for callers that sign themselves. */
import { type Command, Option } from "commander";
import type { CreatedTransaction, NonceReservation } from "../../client/index.ts";
import { given } from "./answer.ts";
import { type Asking, askNode, chainIdOption } from "./remote.ts";

interface ReserveOptions {
  readonly signer: string;
  readonly chainId?: number;
  readonly ttl?: string;
  readonly requestId?: string;
}

export function addNonces(program: Command, asking: Asking): void {
  const nonces = program
    .command("nonces")
    .description("reserve nonces to sign with yourself, and say what became of them");
  const reserve = nonces.command("reserve").description("keep the next nonce for yourself, for a while");
  askNode(reserve, asking, {
    ask: (client) => {
      const { signer, chainId, ttl, requestId = asking.io.newId() } = reserve.opts<ReserveOptions>();
      return client.reserveNonce({ signer, requestId, ...given({ chainId, ttl }) });
    },
    show: reservationLines,
  })
    .addOption(new Option("--signer <address>", "whose").makeOptionMandatory())
    .addOption(new Option("--ttl <duration>", "for how long, such as 5m; at most ten minutes"))
    .addOption(new Option("--request-id <id>", "your own id: a repeat is the same reservation"))
    .addOption(chainIdOption());
  const id = (command: Command) => command.argument("<reservationId>", "as reserve printed it");
  const show = nonces.command("show").description("print a reservation");
  id(askNode(show, asking, { ask: (client) => client.reservation(show.args[0] ?? ""), show: reservationLines }));
  const submit = nonces.command("submit").description("hand in what you signed: it is stored, sent and followed");
  id(
    askNode(submit, asking, {
      ask: (client) => client.submitReserved(submit.args[0] ?? "", submit.args[1] ?? ""),
      show: (created) => `accepted: ${followed(created)}`,
    }),
  ).argument("<rawTransaction>", "the signed bytes, 0x…");
  const used = nonces.command("used").description("name the transaction that you sent yourself: it is followed");
  id(
    askNode(used, asking, {
      ask: (client) => client.markUsed(used.args[0] ?? "", used.args[1] ?? ""),
      show: (created) => `followed: ${followed(created)}`,
    }),
  ).argument("<txHash>", "its hash");
  const release = nonces.command("release").description("give it back: nothing was signed with it");
  id(askNode(release, asking, { ask: (client) => client.releaseNonce(release.args[0] ?? ""), show: reservationLines }));
}

function reservationLines({ reservationId, chainId, signer, nonce, state, expiresAt, txId }: NonceReservation): string {
  const until = state === "RESERVED" ? ` until ${expiresAt}` : "";
  const transaction = txId === null ? "" : `\ntransaction ${txId}`;
  return `${reservationId}: nonce ${nonce} of ${signer} on chain ${chainId} is ${state}${until}${transaction}\n`;
}

function followed({ txId, nonce, state }: CreatedTransaction): string {
  return `transaction ${txId} (nonce ${nonce ?? "-"}) is ${state}\n`;
}
