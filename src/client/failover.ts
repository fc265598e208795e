import { backOffMs } from "./deadline.ts";
import { FencepostError } from "./error-classes.ts";
import { checked } from "./hex.ts";

/** The configured addresses of nodes, the preferred one, and the known owner of each lane. */
export class Ring {
  declare readonly bases: readonly string[];
  home = 0;
  readonly owners = new Map<string, number>();

  constructor(urls: readonly string[]) {
    // Browsers also take a path of the page itself. A host alone would be called in vain until the time limit.
    for (const url of [urls[0], ...urls]) checked(url, "url", /^(https?:|\/)/i, "http(s)");
    this.bases = urls.map(normalised);
  }

  /**
   * Index of an address in the configuration; null if it is not configured, because such an address is never called.
   */
  find(url: string | null | undefined): number | null {
    const at = typeof url === "string" ? this.bases.indexOf(normalised(url)) : -1;
    return at < 0 ? null : at;
  }
}

/** Canonical spelling of an address; a text that is not a URL stays unchanged. */
function normalised(url: string): string {
  return (URL.canParse(url) ? new URL(url).href : url).replace(/\/+$/, "");
}

export interface Routing {
  /** Signer of the call. The address of the lane's owner is remembered under it. */
  readonly lane?: string | undefined;
  /** The call is not idempotent: it is repeated only if a response shows that nothing was done. */
  readonly once?: true;
}

/** Chooses the node address for each attempt of one call. */
export class Attempts {
  declare private readonly ring: Ring;
  declare private readonly routing: Routing;
  declare private at: number;
  private failures = 0;
  private moves = 0;

  constructor(ring: Ring, routing: Routing) {
    Object.assign(this, { ring, routing, at: ring.owners.get(routing.lane ?? "") ?? ring.home });
  }

  get base(): string {
    return this.ring.bases[this.at] as string;
  }

  succeeded(): void {
    const { lane } = this.routing;
    if (lane !== undefined && this.moves > 0) this.ring.owners.set(lane, this.at);
  }

  /**
   * Returns the time to wait before the next attempt, and may have changed the address (`base`) to use for it. Throws
   * the error if a repeat is useless or unsafe.
   */
  afterFailure(error: unknown): number {
    if (!(error instanceof FencepostError)) throw error;
    if (error.code === "NOT_LEADER") return this.toOwner(error);
    if (!(this.routing.once ? saysNothingDone(error) : mayRepeat(error))) throw error;
    // A full queue belongs to the lane, and a quota to the API key. Another node would give the same answer, so wait.
    if (error.status === 429) return this.later(error);
    this.moveOn();
    return ++this.failures % this.ring.bases.length === 0 ? this.later(error) : 0;
  }

  /**
   * Follows NOT_LEADER, which means that nothing was done. If the named owner is not a configured address, each address
   * is tried once: the owner may be configured under another name.
   */
  private toOwner(error: FencepostError): number {
    const { bases } = this.ring;
    const owner = this.ring.find(error.ownerUrl);
    const next = owner ?? (this.at + 1) % bases.length;
    const isOver = ++this.moves > bases.length;
    if (next === this.at || (isOver && owner === null)) throw error;
    this.at = next;
    // While a lane moves between two nodes, each may name the other as owner: after one round, wait.
    return isOver ? this.later(error) : 0;
  }

  private moveOn(): void {
    const { ring, routing, at } = this;
    this.at = (at + 1) % ring.bases.length;
    ring.owners.delete(routing.lane ?? "");
    if (ring.home === at) ring.home = this.at;
  }

  private later({ retryAfterSeconds = 0 }: FencepostError): number {
    return Math.max(backOffMs(this.failures++), retryAfterSeconds * 1000);
  }
}

/**
 * True if a repeat may succeed, at this or another node: there was no answer, the node was overloaded, or a proxy
 * reported one of these.
 */
export function mayRepeat({ code, status }: Pick<FencepostError, "code" | "status">): boolean {
  return code === "UNREACHABLE" || [429, 502, 503, 504].includes(status);
}

function saysNothingDone({ problem, status, outcome }: FencepostError): boolean {
  return problem !== null && (status === 429 || status === 503) && outcome === undefined;
}
