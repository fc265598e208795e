import type { Policies } from "../../domain/policy/policy.ts";
import type { Chain } from "../../ports/chain.ts";
import type { Ports } from "../../ports/ports.ts";
import type { StuckResolutionHook } from "../../ports/stuck-hook.ts";
import type { Tracer } from "../../ports/tracer.ts";
import type { RecentAlerts } from "../queries/recent-alerts.ts";
import type { ChainSettings } from "../settings.ts";
import type { Retention } from "./housekeeping.ts";

/** Everything a node stands on. */
export interface NodePorts extends Ports {
  readonly chains: readonly { readonly chain: Chain; readonly settings: ChainSettings }[];
  /** Absent: without an operator no CANCEL, REPLACE or PLACEHOLDER is ever signed. */
  readonly stuckHook?: StuckResolutionHook;
  /** Absent: nobody listens to alerts, and none are shown. */
  readonly alerts?: Pick<RecentAlerts, "shown">;
  /** Absent: no traces are recorded. */
  readonly tracer?: Tracer;
  /** Absent: everything is kept. */
  readonly retention?: Retention;
  /** Of this node's file or configuration: they seed a database without any, and are compared with the document in force. */
  readonly policies?: Policies | null;
}
