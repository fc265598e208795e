/** Lets requests of other nodes in: each is for this process, signed by a live instance, fresh, and comes once. */
import { FencepostError, unavailable } from "../../domain/errors.ts";
import type { PeerRefusal, Telemetry } from "../../ports/telemetry.ts";
import type { PeerDirectory } from "./directory.ts";
import { digestOf, isSignedBy, readHead } from "./request-head.ts";

/** By how many heartbeats a request may be late: half a minute by default. */
const LATE_AT_MOST = 10;

/** Throws where the body is not the one that was signed. */
export type CheckBody = (body: Buffer) => void;

export class PeerGate {
  private readonly directory: PeerDirectory;
  private readonly telemetry: Telemetry;

  constructor(directory: PeerDirectory, telemetry: Telemetry) {
    this.directory = directory;
    this.telemetry = telemetry;
  }

  /** Before the body is read: strangers get to send no megabytes. UNAVAILABLE where it cannot be said who asks. */
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

  /** The same for every reason: a stranger learns nothing. */
  private refuse(reason: PeerRefusal): FencepostError {
    this.telemetry.emit({ type: "peer.refused", reason });
    return new FencepostError("UNAUTHENTICATED", "this is for other nodes of the same database");
  }
}
