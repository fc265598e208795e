/** `notices` and `acknowledge`: past events that a person must acknowledge. */
import type { Command } from "commander";
import type { Notice, OrderOptions } from "../../client/index.ts";
import { given } from "./answer.ts";
import { keyOption, reasonOption } from "./operate.ts";
import { askNode, chainIdOption, count, type RemotePorts } from "./remote.ts";
import { listing } from "./table.ts";
import type { Paint } from "./terminal.ts";

interface Flags {
  readonly signer?: string;
  readonly chainId?: number;
  readonly limit?: number;
  readonly open?: boolean;
}

export function addNotices(program: Command, ports: RemotePorts): void {
  const notices = program
    .command("notices")
    .description("uses of keys that were not sent from here, and nodes that vanished, with who acknowledged each");
  askNode(notices, ports, {
    ask: async (client) => {
      const { signer, chainId, limit, open } = notices.opts<Flags>();
      return { items: await client.notices(given({ signer, chainId, limit, open })) };
    },
    show: noticesTable,
  })
    .option("--open", "only those that nobody has acknowledged")
    .option("--signer <address>", "of this signer")
    .addOption(chainIdOption())
    .option("--limit <number>", "at most this many", count);
  const acknowledge = program
    .command("acknowledge")
    .description("acknowledge a notice; it needs no attention any more");
  askNode(acknowledge, ports, {
    ask: (client) => {
      const { reason, times, idempotencyKey } = acknowledge.opts<
        { readonly reason: string; readonly times?: number } & OrderOptions
      >();
      const request = { reason, ...given({ times }) };
      return client.acknowledge(acknowledge.args[0] ?? "", request, given({ idempotencyKey }));
    },
    show: (notice, paint) => noticesTable({ items: [notice] }, paint),
  })
    .argument("<notice>", "its id, as notices lists it")
    .addOption(reasonOption())
    .option("--times <number>", "refuse if it has happened more often than this", count)
    .addOption(keyOption());
}

function noticesTable({ items }: { readonly items: readonly Notice[] }, paint: Paint): string {
  if (items.length === 0) return "there are no notices\n";
  const rows = items.map((notice) => [
    ...[notice.noticeId, notice.kind, about(notice), notice.lastSeenAt, String(notice.times), evidenceOf(notice)],
    stateOf(notice),
  ]);
  const heads = ["notice", "kind", "about", "last seen", "times", "evidence", "acknowledged"];
  return listing(heads, rows, paint, (cell, column) => (column === 6 && cell === "not yet" ? "red" : null));
}

function about({ nodeId, signer, chainId }: Notice): string {
  return nodeId === null ? `${signer} on ${chainId}` : `node ${nodeId}`;
}

function evidenceOf({ evidence: [newest] }: Notice): string {
  if (newest?.nonce === undefined) return newest?.why ?? "-";
  const { nonce, through, txHash } = newest;
  return `${through === undefined || through === nonce ? `nonce ${nonce}` : `nonces ${nonce}-${through}`}${txHash ? `, ${txHash}` : ""}`;
}

function stateOf({ acknowledged, overAt }: Notice): string {
  if (acknowledged !== null) return `${acknowledged.by}, ${acknowledged.at}: ${acknowledged.why}`;
  return overAt === null ? "not yet" : `back since ${overAt}`;
}
