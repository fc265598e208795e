/** Everything at once, for people. Any node answers; none of it asks a chain anything. */

import { defined } from "../../domain/defined.ts";
import { ANYBODY, isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { AttentionQuery, HeldQuery, NonceRulerQuery } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { given } from "../requests/fields.ts";
import { parseSigner } from "../requests/normalise.ts";
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
export function createSights(ports: SightPorts) {
  const { store, reports } = ports;
  const explain = (txId: string) => explanationOf({ ...ports, remembered: true }, txId);
  const desk = new AttentionDesk({ ...ports, findings: () => reports.all(), explain });
  const board = new OverviewBoard(ports);
  return {
    /** What needs a person, worst first. */
    attention: (query?: AttentionQuery, limits?: Limits) => desk.view(query, limits),
    /** Everything in figures. */
    overview: (query?: HeldQuery, limits?: Limits) => board.view(query, limits),
    /** By any id, or how it begins. */
    search: (query: { readonly q: string; readonly limit?: number }, limits?: Limits) =>
      findAnything(ports, query, limits),
    /** A lane's nonces by what holds them. UNKNOWN_SIGNER, UNKNOWN_CHAIN if there is no such lane. */
    nonceRuler: (signer: string, query?: NonceRulerQuery) => rulerOf(ports, signer, query),
    /** What happened once and waits, or waited, for a person's word; newest first. */
    notices: async (
      { limit = DEFAULT_LIMIT, ...query }: { signer?: string; chainId?: number; open?: boolean; limit?: number } = {},
      limits: Limits = ANYBODY,
    ) => {
      const signer = given(query.signer, (value) => parseSigner(ports.codec, value, "signer"));
      const found = await store.notices(defined({ ...query, limit, signer }));
      return isLimited(limits) ? found.filter(({ lane }) => lane !== null && isWithin(limits, lane)) : found;
    },
    /** What became of nodes, lanes and the database, newest first. */
    clusterHistory: async ({ limit = DEFAULT_LIMIT }: { readonly limit?: number } = {}, limits: Limits = ANYBODY) => {
      const past = await store.past(limit);
      return { ...past, takeovers: past.takeovers.filter(({ lane }) => isWithin(limits, lane)) };
    },
  };
}
