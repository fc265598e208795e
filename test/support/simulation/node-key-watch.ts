import { isStarted } from "../../../src/domain/chain/answers.ts";
import type { Address } from "../../../src/domain/lane.ts";
import { isSettled } from "../../../src/domain/transaction/transitions.ts";
import type { Chain } from "../../../src/ports/chain.ts";
import type { Applied } from "../../doubles/memory-store/commit.ts";
import type { TransactionRow } from "../../doubles/memory-store/state.ts";
import { CHAIN_ID, type World, type WorldNode } from "../world.ts";
import { BlockTimes } from "./block-times.ts";

/** How long something must have been there before a node certainly sees it, in ms. */
const SEEN_MS = 2_000;

/** Last send of a nonce through a chain's node. */
interface Sent {
  readonly atMs: number;
  /** True once the node has answered, other than that it does not know. */
  isAnswered: boolean;
}

/**
 * Checks the sends of keys that a chain's node holds. Of a send without an answer nobody knows the hash: it is looked for
 * until the time is over before it is sent anew, those above it wait, and a nonce that has a transaction already, on
 * chain or in the pool, gets no other.
 */
export class NodeKeyWatch {
  readonly violations: string[] = [];
  private readonly world: World;
  private readonly wasSet: () => boolean;
  private readonly times: BlockTimes;
  private readonly sent = new Map<string, Sent>();

  /** `wasSet`: true once somebody has set the database's clock, by which the age of a search is known. */
  constructor(world: World, wasSet: () => boolean) {
    this.world = world;
    this.wasSet = wasSet;
    this.times = new BlockTimes(world);
    world.database.state.watchers.push((applied) => {
      for (const each of applied) this.committed(each);
    });
  }

  follow(node: WorldNode): void {
    const send = node.rpc.sendUnsigned.bind(node.rpc) as Chain["sendUnsigned"];
    const watched: Chain["sendUnsigned"] = async (from, transaction, mayLeave, ...how) => {
      let sent: Sent | null = null;
      const asked = () => {
        if (!mayLeave()) return false;
        sent = this.look(from, transaction.nonce, node);
        return true;
      };
      const result = await send(from, transaction, asked, ...how);
      if (sent !== null && isStarted(result)) (sent as Sent).isAnswered = result.answer !== "unknown";
      return result;
    };
    Object.assign(node.rpc, { sendUnsigned: watched });
  }

  private look(signer: Address, nonce: number, node: WorldNode): Sent {
    const place = placeOf(signer, nonce);
    const nowMs = this.world.clock.monotonicMs();
    const row = this.rowAt(signer, nonce);
    const claim = row?.claim ?? null;
    const lane = this.world.database.state.lane({ chainId: CHAIN_ID, signer });
    const isOurs = this.world.database.state.instances.get(lane?.owner ?? "")?.url === node.url;
    if (isOurs && claim?.token !== lane?.token)
      this.violations.push(`nonce ${place} was sent under claim ${claim?.token}, not ${lane?.token}`);
    this.judgeAge(place, row);
    for (const [each, { isAnswered }] of this.sent) {
      const [other, lower] = each.split(" ");
      if (other !== signer || Number(lower) >= nonce || isAnswered) continue;
      if (isUnnamed(this.rowAt(signer, Number(lower))))
        this.violations.push(`nonce ${place} was sent although nobody knows what became of nonce ${lower}`);
    }
    const sent = { atMs: nowMs, isAnswered: false };
    this.sent.set(place, sent);
    return sent;
  }

  private judgeAge(place: string, row: TransactionRow | undefined): void {
    const before = this.sent.get(place);
    if (before === undefined || before.isAnswered || !isUnnamed(row)) return;
    const ageMs = this.world.clock.monotonicMs() - before.atMs;
    if (ageMs < this.world.settings.grayZoneTimeoutMs && !this.wasSet())
      this.violations.push(`nonce ${place} is sent anew ${ageMs} ms after a send without an answer`);
  }

  private committed({ write }: Applied): void {
    if (write.kind !== "transition") return;
    for (const { txId, event } of write.items) {
      if (event !== "sendAnew") continue;
      const row = this.world.database.state.transactions.get(txId);
      if (row === undefined || row.nonce === null) continue;
      const { chain, clock } = this.world;
      const { signer } = row.lane;
      const place = placeOf(signer, row.nonce);
      this.judgeAge(place, row);
      const sent = this.sent.get(place);
      // From here on it is known that the search was in vain.
      if (sent !== undefined) sent.isAnswered = true;
      if (clock.monotonicMs() - (sent?.atMs ?? 0) < SEEN_MS) continue;
      if (chain.pool.entry(signer, row.nonce) !== null)
        this.violations.push(`nonce ${place} is sent anew although its transaction waits in the pool`);
      if (chain.account(signer, this.times.newestSince(SEEN_MS)).nonce > row.nonce)
        this.violations.push(`nonce ${place} is sent anew although it is used`);
    }
  }

  private rowAt(signer: Address, nonce: number): TransactionRow | undefined {
    return this.world.rows().find((row) => row.lane.signer === signer && row.nonce === nonce);
  }
}

const placeOf = (signer: Address, nonce: number) => `${signer} ${nonce}`;

/** True if no hash of the transaction is known, and it is open. */
function isUnnamed(row: TransactionRow | undefined): boolean {
  if (row === undefined || isSettled(row.state) || row.receipt !== null) return false;
  return row.attempts.some(({ txHash, foreign }) => txHash === null && foreign !== true);
}
