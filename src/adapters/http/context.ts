import type { FencepostApi } from "../../application/api.ts";
import type { Clock } from "../../ports/clock.ts";
import type { LongPolls } from "./long-polls.ts";
import type { Checksum } from "./views.ts";

/** What every route file is given. */
export interface RouteContext {
  readonly api: FencepostApi;
  readonly checksum: Checksum;
  readonly clock: Clock;
  readonly version: string;
  readonly longPolls: LongPolls;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Answered without an API key. */
    open?: true;
    /** For other nodes: API keys mean nothing here, the route asks for the cluster's secret itself. */
    peer?: true;
    /** Creates: not let in while this node could not act on it, not even read. */
    takesIn?: true;
    /** Exists only to say 405. */
    refusal?: true;
  }
}
