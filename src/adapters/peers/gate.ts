/**
 * Admits requests of other nodes. Each must be for this process, signed by a live instance, fresh, and not seen before.
 */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { PeerRefusal, Telemetry } from "../../ports/telemetry.ts";
import type { PeerDirectory } from "./directory.ts";
import { digestOf, isSignedBy, readHead } from "./request-head.ts";

/** Number of heartbeats by which a request of another node may be late: half a minute by default. */
const LATE_AT_MOST = 10;

/** Throws if the received body is not the one that the sender signed. */
export type CheckBody = (body: Buffer) => void;

export function peerGate(directory: PeerDirectory, telemetry: Telemetry) {
  /** The error is the same for every reason, so that an unauthenticated caller learns nothing. */
  const refusal = (reason: PeerRefusal) => {
    telemetry.emit({ type: "peer.refused", reason });
    return new FencepostError("UNAUTHENTICATED", "this route is only for other nodes of the same database");
  };
  return {
    /**
     * Authenticates a request before its body is read, so that an unauthenticated caller cannot send megabytes. Throws
     * UNAVAILABLE if the sender cannot be looked up.
     */
    async admit(route: string, authorization: string | undefined): Promise<CheckBody> {
      const head = readHead(authorization);
      if (head === null) throw refusal("unreadable");
      if (!directory.isUs(head.to)) throw refusal("receiver");
      const sender = await directory.find(head.from).catch((error: unknown) => {
        throw unavailable("this node could not read the list of nodes from the database", error);
      });
      if (sender === null || sender.key === null) throw refusal("sender");
      if (!sender.isVouchedFor) throw refusal("secret");
      if (!isSignedBy(route, head, sender.key)) throw refusal("signature");
      if (head.heartbeat < sender.heartbeat - LATE_AT_MOST) throw refusal("stale");
      if (!sender.use(head.number)) throw refusal("replayed");
      return (body) => {
        if (digestOf(body) !== head.digest) throw refusal("body");
      };
    },
  };
}
