/** Everything at once, for people. Any node answers; none of it asks a chain anything. */
import { orDatabaseSilent } from "../../domain/errors.ts";
import { isLimited, isWithin } from "../../domain/principal.ts";
import type { KillStore } from "../../ports/kill-store.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";
import type { NoticeStore } from "../../ports/notice-store.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { SightStore } from "../../ports/sight-store.ts";
import { parseSigner } from "../requests/normalise.ts";
import type { SightApi } from "../sight-api.ts";
import { AttentionDesk } from "./attention.ts";
import { type ExplainPorts, explainTransaction } from "./explain.ts";
import { findAnything } from "./find-anything.ts";
import type { NodeReports } from "./node-reports.ts";
import { type NonceRulerPorts, nonceRuler } from "./nonce-ruler.ts";
import { OverviewBoard } from "./overview.ts";

export interface SightPorts extends Omit<ExplainPorts, "codec">, NonceRulerPorts {
  readonly store: QueryStore &
    SightStore &
    Pick<NoticeStore, "notices"> &
    Pick<KillStore, "kills"> &
    Pick<LeaseStore, "instances">;
  readonly reports: Pick<NodeReports, "all">;
}

const DEFAULT_LIMIT = 100;

export function createSights(ports: SightPorts): SightApi {
  const { store, reports } = ports;
  const explain = (txId: string) => explainTransaction({ ...ports, remembered: true }, txId);
  const desk = new AttentionDesk({ ...ports, findings: () => reports.all(), explain });
  const board = new OverviewBoard(ports);
  const reading = <T>(work: Promise<T>): Promise<T> => orDatabaseSilent(work, null);
  return {
    attention: (query, limits) => reading(desk.view(query, limits)),
    overview: (query, limits) => reading(board.view(query, limits)),
    search: (query, limits) => reading(findAnything(ports, query, limits)),
    nonceRuler: (signer, query) => reading(nonceRuler(ports, signer, query)),
    notices: async ({ limit = DEFAULT_LIMIT, signer, ...query } = {}, limits) => {
      const asked = { ...query, ...(signer !== undefined && { signer: parseSigner(ports.codec, signer, "signer") }) };
      const found = await reading(store.notices({ ...asked, limit }));
      if (limits === undefined || !isLimited(limits)) return found;
      return found.filter(({ lane }) => lane !== null && isWithin(limits, lane));
    },
    clusterHistory: async ({ limit = DEFAULT_LIMIT } = {}, limits) => {
      const past = await reading(store.past(limit));
      if (limits === undefined) return past;
      return { ...past, takeovers: past.takeovers.filter(({ lane }) => isWithin(limits, lane)) };
    },
  };
}
