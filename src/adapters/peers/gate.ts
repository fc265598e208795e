/**
 * Admits requests of other nodes. Each must be for this process, signed by a live instance, fresh, and not seen before.
 */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { PeerRefusal, Telemetry } from "../../ports/telemetry.ts";
import type { PeerDirectory } from "./directory.ts";
import { digestOf, isSignedBy, readHead } from "./request-head.ts";

/** Number of heartbeats by which a request may be late: half a minute by default. */
const LATE_AT_MOST = 10;

/** Throws if the body is not the signed one. */
export type CheckBody = (body: Buffer) => void;

export class PeerGate {
  private readonly directory: PeerDirectory;
  private readonly telemetry: Telemetry;

  constructor(directory: PeerDirectory, telemetry: Telemetry) {
    this.directory = directory;
    this.telemetry = telemetry;
  }

  /**
   * Runs before the body is read, so that a stranger cannot send megabytes. Throws UNAVAILABLE if the sender cannot be
   * looked up.
   */
  async admit(route: string, authorization: string | undefined): Promise<CheckBody> {
    const head = readHead(authorization);
    if (head === null) throw this.refuse("unreadable");
    if (!this.directory.isUs(head.to)) throw this.refuse("receiver");
    const sender = await this.directory.find(head.from).catch((error: unknown) => {
      throw unavailable("this node does not know the others yet", error);
    });
    if (sender === null || sender.key === null) throw this.refuse("sender");
    if (!sender.isVouchedFor) throw this.refuse("secret");
    if (!isSignedBy(route, head, sender.key)) throw this.refuse("signature");
    if (head.heartbeat < sender.heartbeat - LATE_AT_MOST) throw this.refuse("stale");
    if (!sender.used.use(head.number)) throw this.refuse("replayed");
    return (body) => {
      if (digestOf(body) !== head.digest) throw this.refuse("body");
    };
  }

  /** The error is the same for every reason, so that a stranger learns nothing. */
  private refuse(reason: PeerRefusal): FencepostError {
    this.telemetry.emit({ type: "peer.refused", reason });
    return new FencepostError("UNAUTHENTICATED", "this is for other nodes of the same database");
  }
}
