import type { Hash } from "../../src/domain/lane.ts";
import { type DatabaseState, hashKey } from "../doubles/memory-store/state.ts";
import type { SimulatedChain, WitnessEntry } from "../doubles/simulated-chain/core.ts";

/**
 * Checks the database whenever bytes arrive at the chain (invariant I6). By then the bytes and the right to send them
 * must be stored. Otherwise they were sent too early, whatever the database contains later.
 */
export class WireWitness {
  readonly violations: string[] = [];
  private readonly chain: SimulatedChain;
  private readonly state: DatabaseState;
  private readonly isLost: (hash: Hash) => boolean;
  private readonly ownerOf = new Map<string, string>();
  private looksAway = false;

  /** `isLost`: true for bytes that were stored and claimed, and that the database has lost since. */
  constructor(chain: SimulatedChain, state: DatabaseState, isLost: (hash: Hash) => boolean) {
    this.chain = chain;
    this.state = state;
    this.isLost = isLost;
    chain.subscribe((event) => {
      if (event.type === "arrival" && !this.looksAway) this.look(event.entry);
    });
  }

  /** Runs a send of another program; the checks of this class do not apply to it. */
  duringOthers(send: () => void): void {
    this.looksAway = true;
    send();
    this.looksAway = false;
  }

  private look({ raw, hash, from, nonce }: WitnessEntry): void {
    if (hash === null) {
      this.violations.push(`bytes that no node can read: ${raw}`);
      return;
    }
    if (this.isLost(hash)) return;
    const known = this.state.hashes.get(hashKey(this.chain.chainId, hash));
    const row = known === undefined ? undefined : this.state.transactions.get(known.txId);
    const attempt = row?.attempts.find(({ txHash }) => txHash === hash);
    if (row === undefined || attempt === undefined) this.violations.push(`${hash} was sent before it was stored`);
    else if (attempt.rawTransaction !== raw) this.violations.push(`${hash} was stored with other bytes`);
    else if (attempt.firstSentAt === null) this.violations.push(`${hash} was sent before it was claimed`);
    else if (row.nonce !== nonce || row.lane.signer !== from) this.violations.push(`${hash} is not what its row says`);
    if (row !== undefined) this.noteOwner(`${from} ${nonce}`, row.txId);
  }

  /** Call this after commits were lost: their nonces may be given again. */
  forgetOwners(): void {
    this.ownerOf.clear();
  }

  /** Invariant I3: all payloads sent at one nonce belong to one transaction. */
  private noteOwner(place: string, txId: string): void {
    const known = this.ownerOf.get(place) ?? txId;
    if (known !== txId) this.violations.push(`nonce ${place} was sent for ${known} and for ${txId}`);
    this.ownerOf.set(place, known);
  }
}
