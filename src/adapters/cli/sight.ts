/**
 * Commands about the whole cluster: `attention`, `overview`, `search`, `ruler`, `history`, `notices` and `acknowledge`.
 */
import { type Command, Option } from "commander";
import type {
  AcknowledgeOrder,
  Attention,
  AttentionItem,
  AttentionQuery,
  ClusterHistory,
  ClusterHistoryQuery,
  NonceRuler,
  NonceRulerQuery,
  Notice,
  NoticesWish,
  OrderOptions,
  Overview,
  SearchResults,
} from "../../client/index.ts";
import { given } from "./answer.ts";
import { IDEMPOTENCY_KEY, REASON } from "./operate.ts";
import { askNode, CHAIN_ID, count, type RemotePorts } from "./remote.ts";
import { factsTable, listing, tableOf } from "./table.ts";
import type { Colour, Paint } from "./terminal.ts";

const LIMIT = new Option("--limit <number>", "at most this many").argParser(count);

export function addSight(program: Command, ports: RemotePorts): void {
  const attention = program
    .command("attention")
    .description("what needs a person, worst first, and the commands that help");
  askNode(attention, ports, {
    ask: (client, query: AttentionQuery) => client.attention(query),
    show: attentionTable,
  })
    .addOption(LIMIT)
    .addOption(CHAIN_ID);
  const overview = program
    .command("overview")
    .description("everything in figures: states, rates, time to finality, chains and their endpoints");
  askNode(overview, ports, { ask: (client) => client.overview(), show: overviewTable });
  const search = program
    .command("search")
    .description("find by any id, hash, request id, signer, nonce or node, or by how it begins");
  askNode(search, ports, {
    ask: async (client, query: ClusterHistoryQuery, q) => ({ items: await client.search({ q, ...query }) }),
    show: foundTable,
  })
    .argument("<text>", "what to look for")
    .addOption(LIMIT);
  askNode(program.command("ruler").description("a signer's nonces, by what holds them"), ports, {
    ask: (client, query: NonceRulerQuery, signer) => client.nonceRuler(signer, query),
    show: rulerTable,
  })
    .argument("<signer>", "its address")
    .option("--from <nonce>", "the first; by default, a little below the first that is not final", count)
    .option("--to <nonce>", "the last; by default, the newest that was assigned", count)
    .addOption(CHAIN_ID);
  const history = program
    .command("history")
    .description("history of nodes, lanes and the database: takeovers, nodes that came and went, epochs");
  askNode(history, ports, {
    ask: (client, query: ClusterHistoryQuery) => client.clusterHistory(query),
    show: historyTables,
  }).addOption(LIMIT);
}

/** Adds `notices` and `acknowledge`, for past events that a person must acknowledge. */
export function addNotices(program: Command, ports: RemotePorts): void {
  const notices = program
    .command("notices")
    .description("uses of keys that were not sent from here, and nodes that vanished, with who acknowledged each");
  askNode(notices, ports, {
    ask: async (client, query: NoticesWish) => ({ items: await client.notices(query) }),
    show: noticesTable,
  })
    .option("--open", "only those that nobody has acknowledged")
    .option("--signer <address>", "of this signer")
    .addOption(CHAIN_ID)
    .addOption(LIMIT);
  const acknowledge = program
    .command("acknowledge")
    .description("acknowledge a notice; it needs no attention any more");
  askNode(acknowledge, ports, {
    ask: (client, { idempotencyKey, ...request }: AcknowledgeOrder & OrderOptions, noticeId) =>
      client.acknowledge(noticeId, request, given({ idempotencyKey })),
    show: (notice, paint) => noticesTable({ items: [notice] }, paint),
  })
    .argument("<notice>", "its id, as notices lists it")
    .addOption(REASON)
    .option("--times <number>", "refuse if it has happened more often than this", count)
    .addOption(IDEMPOTENCY_KEY);
}

const SEVERITY_COLOURS: Readonly<Record<string, Colour>> = { CRITICAL: "red", ERROR: "red", WARNING: "yellow" };
const TROUBLE = { severity: "severity", code: "code", where, since: "since", what: "sentence" } as const;

function attentionTable({ items, more, past }: Attention, paint: Paint) {
  const over = listing(past, paint, { over: "since", code: "code", where, what: "sentence" });
  const ended = past.length === 0 ? "" : `\n${over}`;
  if (items.length === 0) return `nothing needs attention\n${ended}`;
  const open = listing(items, paint, TROUBLE, (cell, column) =>
    column === 0 ? (SEVERITY_COLOURS[cell] ?? null) : null,
  );
  const helps = items.flatMap(({ actions }) => actions);
  const help = listing(helps, paint, { "what helps": "label", request: ({ method, path }) => `${method} ${path}` });
  const rest = more === 0 ? "" : `and ${more} more: fencepost attention --limit 500\n`;
  return `${open}${rest}${helps.length === 0 ? "" : `\n${help}`}${ended}`;
}

function where({ txId, signer, chainId, nodeId, endpoint }: AttentionItem) {
  const lane = signer === null ? null : `${signer}${chainId === null ? "" : ` on ${chainId}`}`;
  const chain = chainId === null ? null : `chain ${chainId}`;
  return txId ?? lane ?? endpoint ?? chain ?? (nodeId === null ? "everything" : `node ${nodeId}`);
}

function overviewTable(view: Overview, paint: Paint) {
  const { lanes, states, timeToFinalitySeconds: finality, oldestPending: oldest, chains } = view;
  const rate = (value: number | null) => (value === null ? null : `${value.toFixed(1)} a minute`);
  const figures = {
    lanes,
    ...states,
    created: rate(view.createdPerMinute),
    completed: rate(view.completedPerMinute),
    "to finality": finality && `${finality.p50.toFixed(1)} s, 95 of 100 in ${finality.p95.toFixed(1)} s`,
    "oldest pending": oldest && `${oldest.ageSeconds} s, nonce ${oldest.nonce ?? "-"}, ${oldest.txId}`,
  };
  const endpoints = chains.flatMap((chain) => chain.endpoints.map((endpoint) => ({ ...chain, ...endpoint })));
  const table = listing(endpoints, paint, {
    chain: "chainId",
    head: "head",
    since: ({ headSince, stalled }) => headSince && `${headSince}${stalled ? ", stalled" : ""}`,
    "base fee (wei)": "baseFee",
    endpoint: "url",
    status: "status",
    behind: "behind",
  });
  return `${factsTable(figures, paint)}\n${table}`;
}

const foundTable = tableOf<SearchResults["items"][number]>("nothing was found", {
  kind: "kind",
  id: ({ txId, reservationId, signer, nodeId }) => txId ?? reservationId ?? signer ?? nodeId ?? "",
  what: "label",
});

const KIND_COLOURS: Readonly<Record<string, Colour>> = { stuck: "red", hole: "red", failed: "red", held: "yellow" };
const spansTable = tableOf<NonceRuler["spans"][number]>(
  "no nonce was assigned here",
  {
    nonces: ({ from, to }) => (from === to ? from : `${from}-${to}`),
    what: "kind",
    id: ({ txId, reservationId }) => txId ?? reservationId ?? "",
    "": ({ detail }) => detail ?? "",
  },
  (cell) => KIND_COLOURS[cell] ?? null,
);

function rulerTable({ spans, cursor, mined, final }: NonceRuler, paint: Paint) {
  const ends = `next ${cursor ?? "-"}, ${mined ?? "-"} mined on the chain, final below ${final}\n`;
  return `${spansTable({ items: spans }, paint)}${ends}`;
}

const takeoversTable = tableOf<ClusterHistory["takeovers"][number]>("no lane has changed its owner", {
  at: "at",
  chain: "chainId",
  signer: "signer",
  from: "from",
  to: "to",
  token: "fencingToken",
  why: ({ why }) => why ?? "",
});

function historyTables({ takeovers, nodes, database }: ClusterHistory, paint: Paint) {
  const lived = { node: "nodeId", state: "state", version: "version" } as const;
  return [
    takeoversTable({ items: takeovers }, paint),
    listing(nodes, paint, { ...lived, started: "startedAt", "last heartbeat": "heartbeatAt" }),
    listing(database, paint, {
      epoch: "epoch",
      database: "systemIdentifier",
      timeline: "timeline",
      commits: ({ mayHaveLost }) => (mayHaveLost ? "may lack commits" : "whole"),
      "last seen": "seenAt",
    }),
  ].join("\n");
}

const noticesTable = tableOf<Notice>(
  "there are no notices",
  {
    notice: "noticeId",
    kind: "kind",
    about: ({ nodeId, signer, chainId }) => (nodeId === null ? `${signer} on ${chainId}` : `node ${nodeId}`),
    "last seen": "lastSeenAt",
    times: "times",
    evidence: evidenceOf,
    acknowledged: stateOf,
  },
  (cell) => (cell === "not yet" ? "red" : null),
);

function evidenceOf({ evidence: [newest] }: Notice) {
  if (newest?.nonce === undefined) return newest?.why ?? "-";
  const { nonce, through, txHash } = newest;
  const nonces = through === undefined || through === nonce ? `nonce ${nonce}` : `nonces ${nonce}-${through}`;
  return `${nonces}${txHash ? `, ${txHash}` : ""}`;
}

function stateOf({ acknowledged, overAt }: Notice) {
  if (acknowledged !== null) return `${acknowledged.by}, ${acknowledged.at}: ${acknowledged.why}`;
  return overAt === null ? "not yet" : `back since ${overAt}`;
}
