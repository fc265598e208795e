/** Commands that show the whole cluster: `attention`, `overview`, `search`, `ruler` and `history`. */
import { type Command, Option } from "commander";
import type {
  Attention,
  AttentionItem,
  ClusterHistory,
  NonceRuler,
  Overview,
  SearchResults,
} from "../../client/index.ts";
import { given } from "./answer.ts";
import { askNode, chainIdOption, count, type RemotePorts } from "./remote.ts";
import { factsTable, listing } from "./table.ts";
import type { Colour, Paint } from "./terminal.ts";

const limitOption = (): Option => new Option("--limit <number>", "at most this many").argParser(count);

export function addSight(program: Command, ports: RemotePorts): void {
  addAttention(program, ports);
  const overview = program
    .command("overview")
    .description("everything in figures: states, rates, time to finality, chains and their endpoints");
  askNode(overview, ports, { ask: (client) => client.overview(), show: overviewTable });
  const search = program
    .command("search")
    .description("find by any id, hash, request id, signer, nonce or node, or by how it begins");
  askNode<SearchResults>(search, ports, {
    ask: async (client) => {
      const { limit } = search.opts<{ readonly limit?: number }>();
      return { items: await client.search({ q: search.args.join(" "), ...given({ limit }) }) };
    },
    show: foundTable,
  })
    .argument("<text>", "what to look for")
    .addOption(limitOption());
  addRuler(program, ports);
  const history = program
    .command("history")
    .description("history of nodes, lanes and the database: takeovers, nodes that came and went, epochs");
  askNode(history, ports, {
    ask: (client) => {
      const { limit } = history.opts<{ readonly limit?: number }>();
      return client.clusterHistory(given({ limit }));
    },
    show: historyTables,
  }).addOption(limitOption());
}

function addAttention(program: Command, ports: RemotePorts): void {
  const attention = program
    .command("attention")
    .description("what needs a person, worst first, and the commands that help");
  askNode(attention, ports, {
    ask: (client) => {
      const { limit, chainId } = attention.opts<{ readonly limit?: number; readonly chainId?: number }>();
      return client.attention(given({ limit, chainId }));
    },
    show: attentionTable,
  })
    .addOption(limitOption())
    .addOption(chainIdOption());
}

function addRuler(program: Command, ports: RemotePorts): void {
  const ruler = program.command("ruler").description("a signer's nonces, by what holds them");
  askNode(ruler, ports, {
    ask: (client) => {
      const { from, to, chainId } = ruler.opts<{ from?: number; to?: number; chainId?: number }>();
      return client.nonceRuler(ruler.args[0] ?? "", given({ from, to, chainId }));
    },
    show: rulerTable,
  })
    .argument("<signer>", "its address")
    .option("--from <nonce>", "the first; by default, a little below the first that is not final", count)
    .option("--to <nonce>", "the last; by default, the newest that was assigned", count)
    .addOption(chainIdOption());
}

const SEVERITY_COLOURS: Readonly<Record<string, Colour>> = { CRITICAL: "red", ERROR: "red", WARNING: "yellow" };

function attentionTable({ items, more, past }: Attention, paint: Paint): string {
  const over = past.map((item) => [item.since ?? "-", item.code, where(item), item.sentence]);
  const ended = over.length === 0 ? "" : `\n${listing(["over", "code", "where", "what"], over, paint)}`;
  if (items.length === 0) return `nothing needs attention\n${ended}`;
  const rows = items.map((item) => [item.severity, item.code, where(item), item.since ?? "-", item.sentence]);
  const open = listing(["severity", "code", "where", "since", "what"], rows, paint, (cell, column) =>
    column === 0 ? (SEVERITY_COLOURS[cell] ?? null) : null,
  );
  const helps = items.flatMap(({ actions }) => actions.map(({ label, method, path }) => [label, `${method} ${path}`]));
  const help = helps.length === 0 ? "" : `\n${listing(["what helps", "request"], helps, paint)}`;
  return `${open}${more === 0 ? "" : `and ${more} more: fencepost attention --limit 500\n`}${help}${ended}`;
}

function where({ txId, signer, chainId, nodeId, endpoint }: AttentionItem): string {
  const lane = signer === null ? null : `${signer}${chainId === null ? "" : ` on ${chainId}`}`;
  const chain = chainId === null ? null : `chain ${chainId}`;
  return txId ?? lane ?? endpoint ?? chain ?? (nodeId === null ? "everything" : `node ${nodeId}`);
}

function overviewTable(view: Overview, paint: Paint): string {
  const { lanes, states, timeToFinalitySeconds: finality, oldestPending: oldest, chains } = view;
  const rate = (value: number | null) => (value === null ? null : `${value.toFixed(1)} a minute`);
  const figures: readonly (readonly [string, string | null])[] = [
    ["lanes", String(lanes)],
    ...Object.entries(states).map(([state, many]) => [state, String(many)] as const),
    ["created", rate(view.createdPerMinute)],
    ["completed", rate(view.completedPerMinute)],
    [
      "to finality",
      finality === null ? null : `${finality.p50.toFixed(1)} s, 95 of 100 in ${finality.p95.toFixed(1)} s`,
    ],
    ["oldest pending", oldest === null ? null : `${oldest.ageSeconds} s, nonce ${oldest.nonce ?? "-"}, ${oldest.txId}`],
  ];
  const rows = chains.flatMap(({ chainId, head, headSince, stalled, baseFee, endpoints }) =>
    endpoints.map(({ url, status, behind }) => {
      const seen = headSince === null ? "-" : `${headSince}${stalled ? ", stalled" : ""}`;
      return [String(chainId), String(head ?? "-"), seen, baseFee ?? "-", url, status, String(behind ?? "-")];
    }),
  );
  return `${factsTable(figures, paint)}\n${listing(["chain", "head", "since", "base fee (wei)", "endpoint", "status", "behind"], rows, paint)}`;
}

function foundTable({ items }: SearchResults, paint: Paint): string {
  if (items.length === 0) return "nothing was found\n";
  const rows = items.map(({ kind, label, txId, reservationId, signer, nodeId }) => {
    return [kind, txId ?? reservationId ?? signer ?? nodeId ?? "", label];
  });
  return listing(["kind", "id", "what"], rows, paint);
}

const KIND_COLOURS: Readonly<Record<string, Colour>> = { stuck: "red", hole: "red", failed: "red", held: "yellow" };

function rulerTable({ spans, cursor, mined, final }: NonceRuler, paint: Paint): string {
  const ends = `next ${cursor ?? "-"}, ${mined ?? "-"} mined on the chain, final below ${final}\n`;
  if (spans.length === 0) return `no nonce was assigned here\n${ends}`;
  const rows = spans.map(({ from, to, kind, txId, reservationId, detail }) => {
    return [from === to ? String(from) : `${from}-${to}`, kind, txId ?? reservationId ?? "", detail ?? ""];
  });
  return `${listing(["nonces", "what", "id", ""], rows, paint, (cell) => KIND_COLOURS[cell] ?? null)}${ends}`;
}

function historyTables({ takeovers, nodes, database }: ClusterHistory, paint: Paint): string {
  const taken = takeovers.map(({ at, chainId, signer, from, to, fencingToken, why }) => {
    return [at, String(chainId), signer, from ?? "-", to, String(fencingToken), why ?? ""];
  });
  const lived = nodes.map(({ nodeId, state, version, startedAt, heartbeatAt }) => {
    return [nodeId, state, version, startedAt, heartbeatAt];
  });
  const epochs = database.map(({ epoch, systemIdentifier, timeline, mayHaveLost, seenAt }) => {
    return [String(epoch), systemIdentifier, timeline, mayHaveLost ? "may lack commits" : "whole", seenAt];
  });
  return [
    taken.length === 0 ? "no lane has changed its owner\n" : listing(TAKEOVER_HEADS, taken, paint),
    listing(["node", "state", "version", "started", "last heartbeat"], lived, paint),
    listing(["epoch", "database", "timeline", "commits", "last seen"], epochs, paint),
  ].join("\n");
}

const TAKEOVER_HEADS = ["at", "chain", "signer", "from", "to", "token", "why"];
