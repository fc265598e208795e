import type { AlertCode } from "../../../domain/alerts.ts";
import type { BlockTag } from "../../../ports/chain.ts";
import type { EndpointState } from "../../../ports/telemetry.ts";
import type { SendRule } from "./send-rule.ts";
import type { RpcTransport } from "./transport.ts";

export const FAILURES_BEFORE_SKIPPED = 3;

/** One URL and what is known of it. */
export class Endpoint {
  readonly index: number;
  readonly rpc: RpcTransport;
  readonly send: SendRule;
  /** How this node takes `eth_getBlockReceipts`; found out once. */
  blockReceipts: "byHash" | "byObject" | "unsupported" = "byHash";
  /** Blocks up to this height are taken as such that nothing can be proved of; looked into again beyond it. */
  unprovableThrough = -1;
  /** Of `safe` and `finalized`, those that it has shown a block for since contact with it was last lost. */
  readonly shownTags = new Set<BlockTag>();
  failures = 0;
  /** Questions so far, and the last of them that was under way when a failure was counted. */
  asked = 0;
  failedThrough = 0;
  /** Skipped until then; 0 = in use. */
  probeAtMs = 0;
  /** Which chain it proved to serve. Asked at first use, and again after each connection that ended: another machine may answer now. */
  chain: "unproven" | "proven" | "foreign" = "unproven";
  probing = false;
  /** As it was last told of; null: never. */
  reported: EndpointState | null = null;
  /** What was said of it and is not over. */
  readonly alerts = new Set<AlertCode>();
  /** Its head stands still, or lies far behind, while another's moves on; kept by `HeadWatch`. */
  behind = false;
  /** Its head when heads were last compared; null: it was not asked, or did not answer. */
  head: number | null = null;

  constructor(index: number, rpc: RpcTransport, send: SendRule) {
    this.index = index;
    this.rpc = rpc;
    this.send = send;
  }

  /** Keeps failing, or serves another chain: not used until a probe finds it well again. */
  get lost(): boolean {
    return this.chain === "foreign" || this.failures >= FAILURES_BEFORE_SKIPPED;
  }

  /** Another machine may answer from now on. */
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
