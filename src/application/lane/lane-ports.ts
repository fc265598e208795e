import type { Policies } from "../../domain/policy/policy.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { BoundedSigner } from "../../ports/signer.ts";

export interface LaneWriterPorts extends Pick<Ports, "clock" | "telemetry" | "failpoint"> {
  readonly nodeId: string;
}

/** For work that may end in the feed. */
export interface FeedWriterPorts extends LaneWriterPorts {
  /** Wakes callers that wait for the feed on this node. */
  readonly feedGrew: () => void;
}

export interface Limits {
  /** The policies of the document in force, read anew at each use. Null: nothing is limited. */
  readonly policies: Policies | null;
  /** Reads the document again if another one is in force. */
  readonly use: QueryStore["policyUse"];
}

export interface LimitPorts {
  /** Absent: nothing is limited. */
  readonly limits?: Limits;
}

/** Ports of work on one lane: one list for the stages, the detours and the loops over lanes. */
export interface LanePorts extends FeedWriterPorts, LimitPorts, Pick<Ports, "entropy" | "codec"> {
  readonly signer: BoundedSigner;
  readonly store: Pick<
    LaneStore,
    | "findByRequestIds"
    | "loadAllocated"
    | "loadExpiring"
    | "loadIntake"
    | "loadLane"
    | "loadPayloads"
    | "loadRawTransactions"
    | "loadWatched"
    | "settledBelow"
  > &
    Pick<QueryStore, "transaction">;
}
