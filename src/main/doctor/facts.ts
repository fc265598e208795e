/** Everything that the doctor looks at, gathered before anything is judged: a test writes facts down, and reads findings. */
import type { EndpointFacts } from "../../adapters/evm/reads/examine-endpoint.ts";
import type { DatabaseFacts } from "../../adapters/postgres/schema/examine.ts";

export interface Facts {
  /** `20.19.0`. */
  readonly nodeVersion: string;
  /** This program's own. */
  readonly version: string;
  /** As `start` would tell them, one line each. */
  readonly mistakes: readonly string[];
  /** Null: none is configured, which is a mistake told above. */
  readonly database: DatabaseFacts | null;
  readonly hasDirectUrl: boolean;
  readonly clockSkewAllowanceMs: number;
  /** Null: everything is kept. */
  readonly retention: { readonly ageMs: number; readonly requestIdAgeMs: number | null } | null;
  readonly chains: readonly ChainFacts[];
  readonly keys: readonly KeySourceFacts[];
  readonly face: FaceFacts;
}

export interface ChainFacts {
  /** As configured; null: what the endpoints say. */
  readonly chainId: number | null;
  readonly finality: "confirmations" | "safe" | "finalized";
  /** A lane's nonces take the pending count into account. */
  readonly usesPendingCount: boolean;
  readonly endpoints: readonly EndpointFacts[];
}

/** One place that keys come from. */
export interface KeySourceFacts {
  /** As its setting is called. */
  readonly source: string;
  readonly addresses: readonly string[];
  /** What keeps its keys from being used, in one line; null: nothing does. */
  readonly problem: string | null;
  /** What is not right, and does not keep a node from starting. */
  readonly warnings: readonly string[];
}

export interface FaceFacts {
  readonly host: string;
  readonly port: number;
  readonly listening: Listening;
  /** Where other nodes would look for this one. */
  readonly advertisedUrl: string;
  readonly asksForKeys: boolean;
}

/** What a try to listen there met: a node of ours, something else, or nobody. */
export type Listening = "free" | "fencepost" | "taken" | "forbidden" | "noSuchAddress";
