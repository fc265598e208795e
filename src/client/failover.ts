import { backOffMs } from "./deadline.ts";
import { FencepostError } from "./error-classes.ts";

/** The addresses that were given, which of them answers, and which acts for which lane. */
export class Ring {
  readonly bases: readonly string[];
  home = 0;
  readonly owners = new Map<string, number>();

  constructor(urls: readonly string[]) {
    if (urls.length === 0) throw new TypeError("createClient: give at least one url");
    this.bases = urls.map(normalised);
  }

  /** Null unless it is one of those that were given: no other address is ever asked. */
  find(url: string | null | undefined): number | null {
    const at = typeof url === "string" ? this.bases.indexOf(normalised(url)) : -1;
    return at < 0 ? null : at;
  }
}

/** One spelling for one address; what is no address stays as it is. */
function normalised(url: string): string {
  return (URL.canParse(url) ? new URL(url).href : url).replace(/\/+$/, "");
}

export interface Errand {
  /** The signer it is about: its owner is remembered. */
  readonly lane?: string | undefined;
  /** Done twice, it would be two things: repeated only where an answer says that nothing was done. */
  readonly once?: true;
}

/** Where one call goes, answer by answer. */
export class Journey {
  private readonly ring: Ring;
  private readonly errand: Errand;
  private at: number;
  private failures = 0;
  private moves = 0;

  constructor(ring: Ring, errand: Errand) {
    this.ring = ring;
    this.errand = errand;
    this.at = ring.owners.get(errand.lane ?? "") ?? ring.home;
  }

  get base(): string {
    return this.ring.bases[this.at] as string;
  }

  arrived(): void {
    const { lane } = this.errand;
    if (lane !== undefined && this.moves > 0) this.ring.owners.set(lane, this.at);
  }

  /** How long to wait before asking `base`, another one perhaps. Throws the error where asking again is no use, or no good. */
  onward(error: unknown): number {
    if (!(error instanceof FencepostError)) throw error;
    if (error.code === "NOT_LEADER") return this.toOwner(error);
    if (!(this.errand.once ? saysNothingDone(error) : mayRepeat(error))) throw error;
    // A full queue is the lane's, and a used quota the key's: another node would say the same.
    if (error.status === 429) return this.later(error);
    this.leave();
    return ++this.failures % this.ring.bases.length === 0 ? this.later(error) : 0;
  }

  /** Nothing was done. Each is asked once: one of them may be the owner under another name. */
  private toOwner(error: FencepostError): number {
    const { bases } = this.ring;
    const owner = this.ring.find(error.ownerUrl);
    const next = owner ?? (this.at + 1) % bases.length;
    const isOver = ++this.moves > bases.length;
    if (next === this.at || (isOver && owner === null)) throw error;
    this.at = next;
    // They name each other: the lane is on its way from one to the other.
    return isOver ? this.later(error) : 0;
  }

  private leave(): void {
    const { ring, errand, at } = this;
    this.at = (at + 1) % ring.bases.length;
    ring.owners.delete(errand.lane ?? "");
    if (ring.home === at) ring.home = this.at;
  }

  private later({ retryAfterSeconds = 0 }: FencepostError): number {
    return Math.max(backOffMs(this.failures++), retryAfterSeconds * 1000);
  }
}

/** Silence, overload, and what proxies say of either: the answer may come yet, from here or from another node. */
export function mayRepeat({ code, status }: Pick<FencepostError, "code" | "status">): boolean {
  return code === "UNREACHABLE" || [429, 502, 503, 504].includes(status);
}

function saysNothingDone({ problem, status, outcome }: FencepostError): boolean {
  return problem !== null && (status === 429 || status === 503) && outcome === undefined;
}
