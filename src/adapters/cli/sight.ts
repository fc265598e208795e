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
import { commandOf } from "./remedies.ts";
import { askNode, CHAIN_ID, count, type RemotePorts } from "./remote.ts";
import { ageOf, agoOf, dated, indented, inert, short, timeInWords } from "./shorten.ts";
import { factsTable, id, listing, prose, spare, tableOf, time } from "./table.ts";
import type { Colour, View } from "./terminal.ts";

const LIMIT = new Option("--limit <number>", "at most this many").argParser(count);

export function addSight(program: Command, ports: RemotePorts): void {
  const attention = program
    .command("attention")
    .description("what needs a person, worst first, and the commands that help");
  askNode(attention, ports, {
    ask: (client, query: AttentionQuery) => client.attention(query),
    show: attentionBlocks,
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
    show: (notice, view) => noticesTable({ items: [notice] }, view),
  })
    .argument("<notice>", "its id, as notices lists it")
    .addOption(REASON)
    .option("--times <number>", "refuse if it has happened more often than this", count)
    .addOption(IDEMPOTENCY_KEY);
}

const SEVERITY_COLOURS: Readonly<Record<string, Colour>> = { CRITICAL: "red", ERROR: "red", WARNING: "yellow" };

/** Each trouble as a block: its head, what is wrong, and the commands that help, each after its label. */
function attentionBlocks({ items, more, past, asOf }: Attention, view: View) {
  const over = listing(past, view, { over: time("since"), code: "code", where: id(where), what: prose("sentence") });
  const ended = past.length === 0 ? "" : `\n${over}`;
  if (items.length === 0) return `nothing needs attention\n${ended}`;
  const open = items.map((item) => troubleBlock(item, new Date(asOf), view)).join("\n");
  const rest = more === 0 ? "" : `\nand ${more} more: fencepost attention --limit 500${view.reach}\n`;
  return `${open}${rest}${ended}`;
}

function troubleBlock(item: AttentionItem, asOf: Date, view: View) {
  const { severity, code, since, sentence, actions } = item;
  const begun = since === null ? "" : `  ${view.width === null ? `since ${since}` : timeInWords(since, view.now)}`;
  // Only the nodes know some facts; a node's report is older than the answer.
  const known = item.asOf === undefined ? "" : `  (known ${ageOf(item.asOf, asOf)})`;
  const place = view.width === null ? where(item) : inert(where(item)).replace(/0x[0-9a-fA-F]{40}/, short);
  const lines = indented("", `${severity}  ${code}  ${place}${begun}${known}`, view);
  const head = `${view.paint(SEVERITY_COLOURS[severity] ?? "bold", severity)}${lines.slice(severity.length)}`;
  const helps = actions.map((action) => {
    const command = commandOf(action, view, `attention: ${code}`);
    return `  ${view.paint("grey", `# ${inert(action.label)}`)}\n  ${command}\n`;
  });
  return `${head}\n${indented("  ", inert(sentence), view)}\n${helps.join("")}`;
}

function where({ txId, signer, chainId, nodeId, endpoint, subscriber }: AttentionItem) {
  const lane = signer === null ? null : `${signer}${chainId === null ? "" : ` on ${chainId}`}`;
  const chain = chainId === null ? null : `chain ${chainId}`;
  if (subscriber !== undefined) return `webhook ${subscriber}`;
  return txId ?? lane ?? endpoint ?? chain ?? (nodeId === null ? "everything" : `node ${nodeId}`);
}

function overviewTable(overview: Overview, view: View) {
  const { lanes, states, timeToFinalitySeconds: finality, oldestPending: oldest, chains } = overview;
  const rate = (value: number | null) => (value === null ? null : `${value.toFixed(1)} a minute`);
  const figures = {
    "as of": dated(overview.asOf, view),
    lanes,
    ...states,
    created: rate(overview.createdPerMinute),
    completed: rate(overview.completedPerMinute),
    "to finality": finality && `${finality.p50.toFixed(1)} s, 95 of 100 in ${finality.p95.toFixed(1)} s`,
    "oldest pending": oldest && `${oldest.ageSeconds} s, nonce ${oldest.nonce ?? "-"}, ${oldest.txId}`,
  };
  const endpoints = chains.flatMap((chain) => chain.endpoints.map((endpoint) => ({ ...chain, ...endpoint })));
  const table = listing(endpoints, view, {
    chain: "chainId",
    head: "head",
    since: time("headSince"),
    moving: ({ reachable, stalled }) => (reachable ? (stalled ? "stalled" : "yes") : "not known"),
    "base fee (wei)": spare("baseFee", 1),
    endpoint: id("url"),
    status: "status",
    behind: "behind",
  });
  return `${factsTable(figures, view)}\n${table}`;
}

const foundTable = tableOf<SearchResults["items"][number]>("nothing was found", {
  kind: "kind",
  id: id(({ txId, reservationId, signer, nodeId }) => txId ?? reservationId ?? signer ?? nodeId ?? ""),
  what: prose("label"),
});

const KIND_COLOURS: Readonly<Record<string, Colour>> = { stuck: "red", hole: "red", failed: "red", held: "yellow" };
const spansTable = tableOf<NonceRuler["spans"][number]>(
  "no nonce was assigned here",
  {
    nonces: ({ from, to }) => (from === to ? from : `${from}-${to}`),
    what: "kind",
    id: id(({ txId, reservationId }) => txId ?? reservationId ?? ""),
    "": prose(({ detail }) => detail ?? ""),
  },
  (cell) => KIND_COLOURS[cell] ?? null,
);

function rulerTable({ spans, cursor, mined, minedAsOf, final }: NonceRuler, view: View) {
  const counted = mined === null ? "- mined on the chain" : `${mined} mined on the chain${agoOf(minedAsOf, view)}`;
  return `${spansTable({ items: spans }, view)}next ${cursor ?? "-"}, ${counted}, final below ${final}\n`;
}

const takeoversTable = tableOf<ClusterHistory["takeovers"][number]>("no lane has changed its owner", {
  at: time("at"),
  chain: spare("chainId", 1),
  signer: id("signer"),
  from: id("from"),
  to: id("to"),
  token: "fencingToken",
  why: prose(({ why }) => why ?? ""),
});

function historyTables({ takeovers, nodes, database }: ClusterHistory, view: View) {
  return [
    takeoversTable({ items: takeovers }, view),
    listing(nodes, view, {
      node: id("nodeId"),
      state: "state",
      version: "version",
      started: time("startedAt"),
      "last heartbeat": time("heartbeatAt"),
    }),
    listing(database, view, {
      epoch: "epoch",
      database: "systemIdentifier",
      timeline: "timeline",
      commits: ({ mayHaveLost }) => (mayHaveLost ? "may lack commits" : "whole"),
      "last seen": time("seenAt"),
    }),
  ].join("\n");
}

const noticesTable = (notices: { readonly items: readonly Notice[] }, view: View) =>
  tableOf<Notice>(
    "there are no notices",
    {
      notice: id("noticeId"),
      kind: "kind",
      about: id(({ nodeId, signer, chainId }) => (nodeId === null ? `${signer} on ${chainId}` : `node ${nodeId}`)),
      "last seen": time("lastSeenAt"),
      times: spare("times", 2),
      evidence: prose(evidenceOf, 1),
      acknowledged: prose((notice) => stateOf(notice, view)),
    },
    (cell) => (cell === "not yet" ? "red" : null),
  )(notices, view);

function evidenceOf({ evidence: [newest] }: Notice) {
  if (newest?.nonce === undefined) return newest?.why ?? "-";
  const { nonce, through, txHash } = newest;
  const nonces = through === undefined || through === nonce ? `nonce ${nonce}` : `nonces ${nonce}-${through}`;
  return `${nonces}${txHash ? `, ${txHash}` : ""}`;
}

function stateOf({ acknowledged, overAt }: Notice, { width, now }: View) {
  const at = (moment: string) => (width === null ? moment : timeInWords(moment, now));
  if (acknowledged !== null) return `${acknowledged.by}, ${at(acknowledged.at)}: ${acknowledged.why}`;
  return overAt === null ? "not yet" : `back: ${at(overAt)}`;
}
