import type { Policies } from "../../domain/policy/policy.ts";
import type { LaneStore } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { BoundedSigner } from "../../ports/signer.ts";

export interface LaneWriterPorts extends Pick<Ports, "clock" | "telemetry" | "failpoint"> {
  readonly nodeId: string;
}

/** Ports of work that may add to the feed of completions. */
export interface FeedWriterPorts extends LaneWriterPorts {
  /** Wakes callers on this node that wait for the feed. */
  readonly feedGrew: () => void;
}

export interface Limits {
  /** The policies in force, read anew at each use; null if there are none. */
  readonly policies: Policies | null;
  /** Reads how much of the policy limits is used, and reloads the policy document if another one is in force. */
  readonly use: QueryStore["policyUse"];
  /** Reads what the rules about messages have counted, and the policy document in the same way. */
  readonly messageUse: QueryStore["messageUse"];
}

export interface LimitPorts {
  /** Policy limits; absent if nothing is limited. */
  readonly limits?: Limits;
}

/** Ports of work on one lane, shared by the stages, the detours and the loops over lanes. */
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
