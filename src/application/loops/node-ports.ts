import type { Chain } from "../../ports/chain.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Codec } from "../../ports/codec.ts";
import type { Entropy } from "../../ports/entropy.ts";
import type { Failpoints } from "../../ports/failpoints.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";
import type { Peers } from "../../ports/peers.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { SessionLock } from "../../ports/session-lock.ts";
import type { Signer } from "../../ports/signer.ts";
import type { StuckResolutionHook } from "../../ports/stuck-hook.ts";
import type { Telemetry } from "../../ports/telemetry.ts";
import type { WakeUps } from "../../ports/wake-ups.ts";
import type { ChainSettings } from "../settings.ts";

/** Everything a node stands on. */
export interface NodePorts {
  readonly store: LeaseStore & LaneStore & QueryStore;
  readonly chains: readonly { readonly chain: Chain; readonly settings: ChainSettings }[];
  readonly signer: Signer;
  readonly peers: Peers;
  readonly wakeUps: WakeUps;
  readonly sessionLock: SessionLock;
  readonly codec: Codec;
  readonly clock: Clock;
  readonly entropy: Entropy;
  readonly telemetry: Telemetry;
  readonly failpoint: Failpoints;
  /** Absent: without an operator no CANCEL, REPLACE or PLACEHOLDER is ever signed. */
  readonly stuckHook?: StuckResolutionHook;
}

/** What only memory knows, for the gauges. */
export interface NodeGauges {
  readonly lanesHeld: number;
  readonly writerQueueDepth: number;
  readonly pendingDepth: number;
  readonly noncesReserved: number;
  readonly oldestPendingAgeSeconds: number;
  readonly receiptBacklog: number;
}
