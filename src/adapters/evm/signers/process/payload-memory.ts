import {
  identityOf,
  isFirst,
  type MemoryRefusal,
  type PayloadIdentity,
  secondPayload,
  type ToSign,
} from "../../../../domain/keys/signing.ts";
import { type Address, type LaneKey, laneKey } from "../../../../domain/lane.ts";

/**
 * Limits on the number of remembered nonces and payloads. A forgotten nonce is treated like one that was never signed,
 * so the limits cause no refusal.
 */
const MOST = { nonces: 65_536, noncesOfLane: 4_096, payloadsOfNonce: 16 };

/**
 * A payload that this process has agreed to sign. It is remembered, so that another payload for its nonce is signed
 * only with a valid declared reason.
 */
interface Remembered extends PayloadIdentity {
  readonly isFirst: boolean;
}

interface RememberedLane {
  readonly term: number;
  /** Payloads by nonce, in order of signing; the newest is last. */
  readonly nonces: Map<number, readonly Remembered[]>;
}

/**
 * Payloads signed for each nonce, in memory only. The entries are valid for one term (one ownership of a lane) only. In
 * another term, another node may have signed payloads for these nonces; this node has then read them from the database.
 */
export class PayloadMemory {
  private readonly most: typeof MOST;
  /** Lanes in order of use; the most recently used lane is last. */
  private readonly lanes = new Map<LaneKey, RememberedLane>();
  private count = 0;

  constructor(most: Partial<typeof MOST> = {}) {
    this.most = { ...MOST, ...most };
  }

  /** Number of nonces whose payloads are remembered. */
  get size(): number {
    return this.count;
  }

  /**
   * Returns the first payload that must not be signed, or null if all may be signed. In that case they are recorded at
   * once, so that concurrent requests are checked against them. Payloads that are then not signed are removed with
   * `notSigned`.
   */
  admit(signer: Address, term: number, asked: readonly ToSign[]): (MemoryRefusal & { readonly index: number }) | null {
    const identities = asked.map(identityOf);
    const places = new Set<string>();
    for (const [index, each] of asked.entries()) {
      const { chainId, nonce } = each;
      places.add(`${chainId}:${nonce}`);
      if (places.size <= index)
        return { index, message: `nonce ${nonce} is asked for twice in one request`, undeclared: false };
      const payloads = this.laneOf(laneKey({ chainId, signer }), term)?.nonces.get(nonce);
      if (payloads === undefined) continue;
      const before = { payloads, hasFirst: payloads.some((known) => known.isFirst) };
      const refusal = secondPayload(before, each, identities[index] as PayloadIdentity);
      if (refusal !== null) return { ...refusal, index };
    }
    for (const [index, each] of asked.entries()) {
      const lane = this.use(laneKey({ chainId: each.chainId, signer }), term);
      this.remember(lane, each, identities[index] as PayloadIdentity);
      const [unused] = this.count > this.most.nonces ? this.lanes.keys() : [];
      if (unused !== undefined) this.forget(unused);
    }
    return null;
  }

  /**
   * Removes payloads that were admitted but not signed because signing failed, for example because the key service was
   * unavailable. They do not restrict later requests.
   */
  notSigned(signer: Address, term: number, asked: readonly ToSign[]): void {
    for (const each of asked) {
      const nonces = this.laneOf(laneKey({ chainId: each.chainId, signer }), term)?.nonces;
      const payloads = nonces?.get(each.nonce) ?? [];
      const { content, price } = identityOf(each);
      const at = payloads.findLastIndex((known) => known.content === content && known.price === price);
      if (nonces === undefined || at === -1) continue;
      if (payloads.length > 1) nonces.set(each.nonce, payloads.toSpliced(at, 1));
      else if (nonces.delete(each.nonce)) this.count--;
    }
  }

  private laneOf(key: LaneKey, term: number) {
    const lane = this.lanes.get(key);
    return lane?.term === term ? lane : undefined;
  }

  /**
   * Returns the remembered payloads of the lane in this term. Drops those of an earlier term (an earlier ownership of
   * the lane).
   */
  private use(key: LaneKey, term: number) {
    const lane = this.laneOf(key, term) ?? { term, nonces: new Map<number, readonly Remembered[]>() };
    if (lane.nonces.size === 0) this.forget(key);
    this.lanes.delete(key);
    this.lanes.set(key, lane);
    return lane;
  }

  private remember({ nonces }: RememberedLane, { nonce, because }: ToSign, identity: PayloadIdentity) {
    const before = nonces.get(nonce);
    nonces.delete(nonce);
    const isFull = before !== undefined && before.length >= this.most.payloadsOfNonce;
    const known = before === undefined || isFull ? [] : before;
    nonces.set(nonce, [...known, { ...identity, isFirst: isFirst(because) }]);
    if (before !== undefined) return;
    this.count++;
    const [oldest] = nonces.size > this.most.noncesOfLane ? nonces.keys() : [];
    if (oldest !== undefined && nonces.delete(oldest)) this.count--;
  }

  private forget(key: LaneKey) {
    this.count -= this.lanes.get(key)?.nonces.size ?? 0;
    this.lanes.delete(key);
  }
}
