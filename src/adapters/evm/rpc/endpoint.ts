import type { AlertCode } from "../../../domain/troubles/table.ts";
import type { BlockTag } from "../../../ports/chain.ts";
import type { EndpointState } from "../../../ports/telemetry.ts";
import type { SendRule } from "./send-rule.ts";
import type { RpcTransport } from "./transport.ts";

export const FAILURES_BEFORE_SKIPPED = 3;

/** An RPC endpoint and its state. */
export class Endpoint {
  readonly index: number;
  readonly rpc: RpcTransport;
  readonly send: SendRule;
  /** Form of `eth_getBlockReceipts` that this node takes; learned at the first use. */
  blockReceipts: "byHash" | "byObject" | "unsupported" = "byHash";
  /** Blocks up to this height count as unprovable. Later blocks are tried again. */
  unprovableThrough = -1;
  /** The tags among `safe` and `finalized` for which it has shown a block since the last lost connection. */
  readonly shownTags = new Set<BlockTag>();
  failures = 0;
  /** Number of requests so far, and the last of them that was in flight when a failure was counted. */
  asked = 0;
  failedThrough = 0;
  /** Time of the next probe while it is skipped; 0 = in use. */
  probeAtMs = 0;
  /**
   * Result of the chain check. It runs at first use and after each closed connection: the URL may lead to another
   * machine now.
   */
  chain: "unproven" | "proven" | "foreign" = "unproven";
  probing = false;
  /** State of the last telemetry event; null if there was none. */
  reported: EndpointState | null = null;
  /** Alerts that were raised and not resolved. */
  readonly alerts = new Set<AlertCode>();
  /** Its head is stuck or far behind while another endpoint's head moves. Set by `HeadWatch`. */
  behind = false;
  /** Its head at the last comparison; null if it was not asked or did not answer. */
  head: number | null = null;

  constructor(index: number, rpc: RpcTransport, send: SendRule) {
    this.index = index;
    this.rpc = rpc;
    this.send = send;
  }

  /** It keeps failing, or serves another chain. It is not used until a probe succeeds. */
  get lost(): boolean {
    return this.chain === "foreign" || this.failures >= FAILURES_BEFORE_SKIPPED;
  }

  /** Requires a new chain check: the URL may lead to another machine from now on. */
  proveAgain(): void {
    if (this.chain === "proven") this.chain = "unproven";
  }

  get down(): boolean {
    return this.state !== "up";
  }

  get state(): EndpointState {
    if (this.chain === "foreign") return "foreign";
    if (this.lost) return "failing";
    return this.behind ? "behind" : "up";
  }
}
