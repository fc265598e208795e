import type { Hash } from "../../src/domain/lane.ts";
import { type DatabaseState, hashKey } from "../doubles/memory-store/state.ts";
import type { SimulatedChain, WitnessEntry } from "../doubles/simulated-chain/core.ts";

/**
 * Stands at the wire and looks into the database at the instant something arrives (I6): bytes that are not stored and
 * claimed by then were sent too early, whatever the database says later.
 */
export class WireWitness {
  readonly violations: string[] = [];
  private readonly chain: SimulatedChain;
  private readonly state: DatabaseState;
  private readonly hashAt = new Map<string, Hash>();

  constructor(chain: SimulatedChain, state: DatabaseState) {
    this.chain = chain;
    this.state = state;
    chain.subscribe((event) => {
      if (event.type === "arrival") this.look(event.entry);
    });
  }

  private look({ raw, hash, from, nonce }: WitnessEntry): void {
    if (hash === null) {
      this.violations.push(`bytes that no node can read: ${raw}`);
      return;
    }
    const row = this.state.hashes.get(hashKey(this.chain.chainId, hash));
    const attempt = row?.attempts.find(({ txHash }) => txHash === hash);
    if (row === undefined || attempt === undefined) this.violations.push(`${hash} was sent before it was stored`);
    else if (attempt.rawTransaction !== raw) this.violations.push(`${hash} was stored with other bytes`);
    else if (attempt.firstSentAt === null) this.violations.push(`${hash} was sent before it was claimed`);
    else if (row.nonce !== nonce || row.lane.signer !== from) this.violations.push(`${hash} is not what its row says`);
    const place = `${from} ${nonce}`;
    const known = this.hashAt.get(place) ?? hash;
    if (known !== hash) this.violations.push(`nonce ${nonce} of ${from} was sent with two payloads`);
    this.hashAt.set(place, known);
  }
}
