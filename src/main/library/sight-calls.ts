import { queryReader } from "../../adapters/http/query.ts";
import * as views from "../../adapters/http/sight-views.ts";
import type { FencepostFace } from "../../client/face.ts";
import { Attention, AttentionQuery } from "../../contract/attention.ts";
import { ClusterHistory, ClusterHistoryQuery } from "../../contract/cluster-history.ts";
import { NonceRuler, NonceRulerQuery } from "../../contract/nonce-ruler.ts";
import { Notice, NoticesQuery } from "../../contract/notice.ts";
import { Overview, OverviewQuery } from "../../contract/overview.ts";
import { SearchQuery, SearchResults } from "../../contract/search.ts";
import { type Asking, asParameters, type Inside } from "./asking.ts";
import { shaped } from "./contract-shape.ts";

const readAttention = queryReader(AttentionQuery);
const readOverview = queryReader(OverviewQuery);
const readSearch = queryReader(SearchQuery);
const readRuler = queryReader(NonceRulerQuery);
const readNotices = queryReader(NoticesQuery);
const readHistory = queryReader(ClusterHistoryQuery);

export function sightCalls({ api, checksum }: Inside, asking: Asking) {
  const holding = ({ wait = 0 }: { readonly wait?: number }, options: Parameters<FencepostFace["overview"]>[1]) => ({
    waitMs: Math.round(wait * 1000),
    ...asking.untilClosed(options ?? {}),
  });
  return {
    attention: (query = {}, options) =>
      asking.read(options, async () => {
        const asked = readAttention(asParameters(query));
        const { signal, waitMs } = holding(asked, options);
        return shaped(Attention, views.attentionView(await api.attention({ ...asked, waitMs, signal }), checksum));
      }),
    overview: (query = {}, options) =>
      asking.read(options, async () => {
        const asked = readOverview(asParameters(query));
        const { signal, waitMs } = holding(asked, options);
        return shaped(Overview, views.overviewView(await api.overview({ ...asked, waitMs, signal }), checksum));
      }),
    search: (query, options) =>
      asking.read(options, async () => {
        const found = await api.search(readSearch(asParameters(query)));
        return shaped(SearchResults, views.searchView(found, checksum)).items;
      }),
    nonceRuler: (signer, query = {}, options) =>
      asking.read(options, async () => {
        const ruler = await api.nonceRuler(signer, readRuler(asParameters(query)));
        return shaped(NonceRuler, views.nonceRulerView(ruler, checksum));
      }),
    notices: ({ open, ...query } = {}, options) =>
      asking.read(options, async () => {
        const { open: _, ...asked } = readNotices(asParameters(query));
        const found = await api.notices({ ...asked, open: open === true });
        return found.map((notice) => shaped(Notice, views.noticeView(notice, checksum)));
      }),
    clusterHistory: (query = {}, options) =>
      asking.read(options, async () => {
        const past = await api.clusterHistory(readHistory(asParameters(query)));
        return shaped(ClusterHistory, views.clusterHistoryView(past, checksum));
      }),
  } satisfies Partial<FencepostFace>;
}
