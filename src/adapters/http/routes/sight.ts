import type { FastifyInstance, FastifyReply } from "fastify";
import type { HeldQuery } from "../../../application/sight-api.ts";
import { Attention, AttentionQuery } from "../../../contract/attention.ts";
import { ClusterHistory, ClusterHistoryQuery } from "../../../contract/cluster-history.ts";
import { NonceRuler, NonceRulerQuery } from "../../../contract/nonce-ruler.ts";
import { Notice, Notices, NoticesQuery } from "../../../contract/notice.ts";
import { Overview, OverviewQuery } from "../../../contract/overview.ts";
import { SearchQuery, SearchResults } from "../../../contract/search.ts";
import { keyOfOrder } from "../idempotency-key.ts";
import { actorOf, answering, type RouteContext, TRANSACTION_LIMIT_BYTES } from "../options.ts";
import { noQuery, queryReader } from "../query.ts";
import {
  attentionView,
  clusterHistoryView,
  nonceRulerView,
  noticeView,
  overviewView,
  searchView,
} from "../sight-views.ts";

interface BySigner {
  readonly Params: { readonly signer: string };
}

interface ByNotice {
  readonly Params: { readonly noticeId: string };
}

const readNotices = queryReader(NoticesQuery);
const readAttention = queryReader(AttentionQuery);
const readOverview = queryReader(OverviewQuery);
const readSearch = queryReader(SearchQuery);
const readRuler = queryReader(NonceRulerQuery);
const readHistory = queryReader(ClusterHistoryQuery);

/** Everything at once, for people: the page and the command line ask these again and again. */
export function sightRoutes(app: FastifyInstance, context: RouteContext): void {
  const { checksum } = context;

  app.get("/api/v1/attention", answering({ 200: Attention }), async ({ query, api }, reply) => {
    const asked = readAttention(query);
    const view = await held(context, reply, asked, (hold) => api.attention({ ...asked, ...hold }));
    return view && attentionView(view, checksum);
  });

  app.get("/api/v1/overview", answering({ 200: Overview }), async ({ query, api }, reply) => {
    const asked = readOverview(query);
    const view = await held(context, reply, asked, (hold) => api.overview({ ...asked, ...hold }));
    return view && overviewView(view, checksum);
  });

  app.get("/api/v1/search", answering({ 200: SearchResults }), async ({ query, api }) =>
    searchView(await api.search(readSearch(query)), checksum),
  );

  app.get<BySigner>("/api/v1/signers/:signer/nonces", answering({ 200: NonceRuler }), async (request) => {
    const { params, query, api } = request;
    return nonceRulerView(await api.nonceRuler(params.signer, readRuler(query)), checksum);
  });

  app.get("/api/v1/notices", answering({ 200: Notices }), async ({ query, api }) => {
    const { open, ...asked } = readNotices(query);
    const found = await api.notices({ ...asked, open: open === "true" });
    return { items: found.map((notice) => noticeView(notice, checksum)) };
  });

  const acknowledging = { bodyLimit: TRANSACTION_LIMIT_BYTES, ...answering({ 200: Notice }) };
  app.post<ByNotice>("/api/v1/notices/:noticeId/acknowledge", acknowledging, async (request) => {
    const { params, query, body, principal, api } = request;
    noQuery(query);
    const order = { noticeId: params.noticeId, request: body, actor: actorOf(principal), ...keyOfOrder(request) };
    return noticeView(await api.acknowledge(order), checksum);
  });

  app.get("/api/v1/cluster/history", answering({ 200: ClusterHistory }), async ({ query, api }) =>
    clusterHistoryView(await api.clusterHistory(readHistory(query)), checksum),
  );
}

interface Held {
  readonly revision?: string;
  readonly wait?: number;
}

/** A wait that is cut short by a node on its way out is answered with what there is; one whose caller hung up, not at all. */
async function held<T>(
  { longPolls }: RouteContext,
  reply: FastifyReply,
  { wait = 0, revision }: Held,
  ask: (hold: HeldQuery) => Promise<T>,
): Promise<T | undefined> {
  if (wait === 0 || revision === undefined) return ask({});
  const view = await longPolls.hold(reply.raw, (signal) => ask({ waitMs: Math.round(wait * 1000), signal }));
  if (!reply.raw.destroyed) return view;
  reply.hijack();
  return undefined;
}
