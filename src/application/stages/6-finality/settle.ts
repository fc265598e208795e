/**
 * Stage 6: whether a receipt may decide. Confirmed, reverted, cancelled, replaced, placeholder, nonce used by another
 * program: every outcome rests on a receipt that one endpoint gave, and that endpoint may have lied. Before anything is final
 * the endpoints are asked once more, together (ports/chain.ts, settleReceipts): one question per block, for all lanes.
 *
 * Reads: the endpoints. Writes: nothing itself; what is agreed on goes into the outcome's commit (stage 7), what is not in
 * its block after all is withdrawn (reorg.ts). Invariants: I7, I8. A crash leaves TRACKING/MINED, asked about anew.
 */
import { depthNeeded } from "../../../domain/chain/finality.ts";
import type { Hash } from "../../../domain/lane.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import { type BlockPlace, ChainUnavailable, type ReceiptVerdict, type Settling } from "../../../ports/chain.ts";
import type { LaneStore } from "../../../ports/lane-store.ts";
import type { ChainContext } from "../../chain/chain-context.ts";
import { sideBySide } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { withOwnContract } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { saysTheSame } from "../5-receipt/external-use.ts";
import type { Correction } from "../7-complete/complete.ts";

/** By the hash of what was mined. What has none is decided in no way. */
export type Verdicts = ReadonlyMap<Hash, ReceiptVerdict>;

export interface MinedOn {
  readonly lane: OwnedLane;
  readonly tx: Tracked;
  readonly receipt: Receipt;
}

/** Blocks asked about at once: after a long absence there are many, and each may be proved whole. */
const BLOCKS_AT_ONCE = 4;

/** What the endpoints say together of everything that is about to be decided. */
export async function settleReceipts(context: ChainContext, mined: readonly MinedOn[]): Promise<Verdicts> {
  const verdicts = new Map<Hash, ReceiptVerdict>();
  const blocks = blocksOf(mined).filter(({ block }) => context.disputes.mayAsk(block.hash));
  await sideBySide(blocks, BLOCKS_AT_ONCE, (asked) => settleBlock(context, asked, verdicts));
  return verdicts;
}

interface AskedBlock {
  readonly block: BlockPlace;
  readonly transactions: Settling[];
}

function blocksOf(mined: readonly MinedOn[]): readonly AskedBlock[] {
  const blocks = new Map<Hash, AskedBlock>();
  for (const each of mined) {
    const { blockNumber: number, blockHash: hash } = each.receipt;
    const asked = blocks.get(hash) ?? { block: { number, hash }, transactions: [] };
    blocks.set(hash, asked);
    asked.transactions.push(settlingOf(each));
  }
  return [...blocks.values()];
}

/** A hash that a caller, a signing node or an endpoint named is not by itself the hash of something at our nonce. */
function settlingOf({ lane, tx, receipt: { txHash } }: MinedOn): Settling {
  const attempt = tx.attempts.find((each) => each.txHash === txHash);
  const isNamed = attempt?.kind === "external" || attempt?.foreign === true || attempt?.nodeSigned === true;
  return isNamed ? { txHash, sentBy: { signer: lane.lane.signer, nonce: tx.nonce } } : { txHash };
}

/** A block that no endpoint answers for keeps no other block waiting. */
async function settleBlock(
  { chain, disputes, settings }: ChainContext,
  { block, transactions }: AskedBlock,
  verdicts: Map<Hash, ReceiptVerdict>,
): Promise<void> {
  try {
    const answers = await chain.settleReceipts(block, transactions, depthNeeded(settings));
    for (const [index, { txHash }] of transactions.entries()) {
      const verdict = answers[index];
      if (verdict !== undefined) verdicts.set(txHash, verdict);
    }
    const disputed = answers.find((verdict) => verdict.kind === "disagree");
    const late = answers.find((verdict) => verdict.kind === "behind");
    if (disputed?.kind === "disagree") disputes.note(block, disputed.answers);
    else if (late?.kind === "behind") disputes.wait(block, late.detail);
    else disputes.end(block.hash);
  } catch (error) {
    if (!(error instanceof ChainUnavailable)) throw error;
    disputes.wait(block, error.message);
  }
}

/**
 * Of transactions that a chain node signed: whether what was mined is another program's, by the contents that are settled.
 * One endpoint said so when it was found, and that one may have lied in either direction.
 */
export async function foreignByContents(
  { store }: { readonly store: Pick<LaneStore, "loadPayloads"> },
  candidates: readonly Tracked[],
  verdicts: Verdicts,
): Promise<ReadonlyMap<Tracked, boolean>> {
  const shown = candidates.flatMap((tx) => {
    const verdict = tx.receipt === null ? undefined : verdicts.get(tx.receipt.txHash);
    const isNodeSigned = tx.attempts.some(({ nodeSigned }) => nodeSigned === true);
    return isNodeSigned && verdict?.kind === "agreed" && verdict.sent !== undefined
      ? [[tx, verdict.sent] as const]
      : [];
  });
  if (shown.length === 0) return new Map();
  const payloads = await store.loadPayloads(shown.map(([{ txId }]) => txId));
  return new Map(
    shown.flatMap(([tx, sent], index) => {
      const payload = payloads[index];
      return payload === undefined ? [] : [[tx, !saysTheSame(payload, sent)] as const];
    }),
  );
}

export interface Decided {
  /** To be completed, by the receipts that they have or by those of `corrected`. */
  readonly settled: readonly Tracked[];
  /** Of those: the database holds another receipt. */
  readonly corrected: ReadonlyMap<Tracked, Correction>;
  /** Said to be mined, and not in that block. */
  readonly absent: readonly Tracked[];
}

/** What follows from the verdicts for transactions of one lane. */
export function applyVerdicts(
  ports: LanePorts,
  lane: OwnedLane,
  candidates: readonly Tracked[],
  verdicts: Verdicts,
): Decided {
  const settled: Tracked[] = [];
  const corrected = new Map<Tracked, Correction>();
  const absent: Tracked[] = [];
  for (const tx of candidates) {
    const verdict = tx.receipt === null ? undefined : verdicts.get(tx.receipt.txHash);
    if (verdict?.kind === "absent") absent.push(tx);
    if (verdict?.kind === "unproven" || verdict?.kind === "agreed") settled.push(tx);
    if (verdict?.kind !== "agreed") continue;
    const receipt = withOwnContract(ports, lane, tx, verdict.receipt);
    const stored = difference(tx.receipt, receipt);
    if (stored !== null) corrected.set(tx, { receipt, stored });
  }
  return { settled, corrected, absent };
}

/**
 * But for its place in the block, by which nothing is decided, and which nodes count each in their own way. Not every node
 * tells the price that was paid: who told none, or told another one than is known now, has not lied about the outcome.
 */
function difference(stored: Receipt | null, agreed: Receipt): Correction["stored"] | null {
  const isTrue =
    stored?.status === agreed.status &&
    stored.gasUsed === agreed.gasUsed &&
    stored.contractAddress === agreed.contractAddress;
  if (!isTrue) return "false";
  const isPaid =
    stored.effectiveGasPrice === agreed.effectiveGasPrice &&
    stored.besideGas === agreed.besideGas &&
    stored.besideGasUnsure === agreed.besideGasUnsure;
  return isPaid ? null : "imprecise";
}
