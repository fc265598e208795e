/** Everything at once, for people. Any node answers; none of it asks a chain anything. */

import type { Notice } from "../../domain/cluster/notices.ts";
import { orDatabaseSilent } from "../../domain/errors.ts";
import { isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { ClusterPast } from "../../ports/sight-store.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { parseSigner } from "../requests/normalise.ts";
import type {
  AttentionQuery,
  AttentionView,
  Found,
  HeldQuery,
  NonceRulerQuery,
  NoticesQuery,
  OverviewView,
} from "../sight-api.ts";
import { AttentionDesk } from "./attention.ts";
import { explanationOf } from "./explain.ts";
import type { ExplainPorts } from "./explained-lane.ts";
import { findAnything } from "./find-anything.ts";
import type { NodeReports } from "./node-reports.ts";
import { rulerOf } from "./nonce-ruler.ts";
import { OverviewBoard } from "./overview.ts";

export type SightPorts = CallPorts & Pick<ExplainPorts, "kills"> & { readonly reports: Pick<NodeReports, "all"> };

const DEFAULT_LIMIT = 100;

/** `limits`: of the API key that asks; absent: it may see everything. */
export type SightCalls = ReturnType<typeof createSights>;

export function createSights(ports: SightPorts) {
  const { store, reports } = ports;
  const explain = (txId: string) => explanationOf({ ...ports, remembered: true }, txId);
  const desk = new AttentionDesk({ ...ports, findings: () => reports.all(), explain });
  const board = new OverviewBoard(ports);
  const reading = <T>(work: Promise<T>) => orDatabaseSilent(work, null);
  return {
    /** What needs a person, worst first. */
    attention: (query?: AttentionQuery, limits?: Limits): Promise<AttentionView> => reading(desk.view(query, limits)),
    /** Everything in figures. */
    overview: (query?: HeldQuery, limits?: Limits): Promise<OverviewView> => reading(board.view(query, limits)),
    /** By any id, or how it begins. */
    search: (query: { readonly q: string; readonly limit?: number }, limits?: Limits): Promise<readonly Found[]> =>
      reading(findAnything(ports, query, limits)),
    /** A lane's nonces by what holds them. UNKNOWN_SIGNER, UNKNOWN_CHAIN if there is no such lane. */
    nonceRuler: (signer: string, query?: NonceRulerQuery) => reading(rulerOf(ports, signer, query)),
    /** What happened once and waits, or waited, for a person's word; newest first. */
    notices: async (
      { limit = DEFAULT_LIMIT, signer, ...query }: NoticesQuery = {},
      limits?: Limits,
    ): Promise<readonly Notice[]> => {
      const asked = { ...query, ...(signer !== undefined && { signer: parseSigner(ports.codec, signer, "signer") }) };
      const found = await reading(store.notices({ ...asked, limit }));
      if (limits === undefined || !isLimited(limits)) return found;
      return found.filter(({ lane }) => lane !== null && isWithin(limits, lane));
    },
    /** What became of nodes, lanes and the database, newest first. */
    clusterHistory: async (
      { limit = DEFAULT_LIMIT }: { readonly limit?: number } = {},
      limits?: Limits,
    ): Promise<ClusterPast> => {
      const past = await reading(store.past(limit));
      if (limits === undefined) return past;
      return { ...past, takeovers: past.takeovers.filter(({ lane }) => isWithin(limits, lane)) };
    },
  };
}
