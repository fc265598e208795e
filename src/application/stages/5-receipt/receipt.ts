/**
 * Stage 5: finds receipts. Block by block: a new block's transaction hashes are matched against what is tracked, so the
 * cost grows with blocks. A look by hash is the net below: for what was resumed, what the follower may have missed, and
 * what has waited too long.
 *
 * Reads: the chain. Writes: the receipt, TRACKING/MINED. Invariant I7: "not found" is what a healthy endpoint said; an
 * error is nothing at all, goes to the tail of the queue and blocks no other look.
 * A crash before the commit leaves TRACKING; the next owner looks by hash. After it, MINED waits for finality.
 */

import { isUnsure } from "../../../domain/pace/lane-pace.ts";
import { byTurn, isLookDue, looked, lookFailed, lookOwed } from "../../../domain/pace/transaction-pace.ts";
import { hashesOf } from "../../../domain/transaction/attempts.ts";
import type { Receipt } from "../../../domain/transaction/transaction.ts";
import type { Block, ChainTransaction } from "../../../ports/chain.ts";
import { type ChainContext, canonicalHashes, LOOKS_AT_ONCE } from "../../chain/chain-context.ts";
import { sideBySide } from "../../lane/activity.ts";
import type { LanePorts } from "../../lane/lane-ports.ts";
import { commitPlanned, type Planned, plan, withOwnContract } from "../../lane/lane-writer.ts";
import type { OwnedLane, Tracked } from "../../lane/owned-lane.ts";
import { quietly } from "../../lane/term.ts";
import { establish, happened } from "../../lane/tracked.ts";

/** Matches new blocks. Returns those whose receipts could not be fetched, to be tried again. */
export async function receiptsOfBlocks(
  ports: LanePorts,
  context: ChainContext,
  blocks: readonly Block[],
): Promise<readonly Block[]> {
  const failed: Block[] = [];
  const ours = blocks.filter((block) => block.transactionHashes.some((hash) => context.hashes.has(hash)));
  await sideBySide(ours, context.settings.receiptWorkers, async (block) => {
    if (!(await receiptsOfBlock(ports, context, block))) failed.push(block);
  });
  return failed;
}

async function receiptsOfBlock(ports: LanePorts, context: ChainContext, block: Block): Promise<boolean> {
  const hashes = block.transactionHashes.filter((hash) => context.hashes.has(hash));
  const { chainId } = context.chain;
  try {
    const receipts = await context.chain.receiptsInBlock(block, hashes);
    ports.telemetry.emit({ type: "receipt.checked", chainId, result: "found", count: receipts.length });
    const canonical = receipts.filter(
      (receipt) => context.follower.window.contains(block) && receipt.blockHash === block.hash,
    );
    const isComplete = await record(ports, context, canonical);
    return isComplete && receipts.length === hashes.length;
  } catch {
    ports.telemetry.emit({ type: "receipt.checked", chainId, result: "error", count: hashes.length });
    return false;
  }
}

/**
 * Looks for receipts by hash of everything that owes a look, oldest first, behind it what got no answer last time. Half
 * as many are asked for after that: an endpoint that counts calls would refuse the same hundred for ever.
 */
export async function staleReceipts(
  ports: LanePorts,
  context: ChainContext,
  lanes: Iterable<OwnedLane>,
): Promise<void> {
  const due: Tracked[] = [];
  const nowMs = ports.clock.monotonicMs();
  for (const lane of lanes) {
    for (const tx of lane.unmined.values()) {
      if (isLookDue(tx.pace, nowMs, context.settings.staleReceiptTimeoutMs)) due.push(tx);
    }
  }
  due.sort((a, b) => byTurn(a.pace, b.pace));
  for (let from = 0; from < due.length; ) {
    const asked = due.slice(from, from + context.looksAtOnce);
    if (!(await lookUp(ports, context, asked))) {
      context.looksAtOnce = Math.max(1, Math.floor(asked.length / 2));
      return;
    }
    context.looksAtOnce = Math.min(2 * context.looksAtOnce, LOOKS_AT_ONCE);
    from += asked.length;
  }
}

async function lookUp(ports: LanePorts, context: ChainContext, transactions: readonly Tracked[]): Promise<boolean> {
  const hashes = transactions.flatMap((tx) => hashesOf(tx.attempts));
  const { chainId } = context.chain;
  try {
    const found = (await context.chain.receipts(hashes)).filter((receipt) => receipt !== null);
    const canonical = await onCanonicalChain(context, found);
    const nowMs = ports.clock.monotonicMs();
    for (const tx of transactions) happened(tx, looked, nowMs);
    ports.telemetry.emit({ type: "receipt.checked", chainId, result: "found", count: found.length });
    ports.telemetry.emit({ type: "receipt.checked", chainId, result: "notFound", count: hashes.length - found.length });
    await record(ports, context, canonical);
    return true;
  } catch {
    const nowMs = ports.clock.monotonicMs();
    for (const tx of transactions) happened(tx, lookFailed, nowMs);
    ports.telemetry.emit({ type: "receipt.checked", chainId, result: "error", count: hashes.length });
    return false;
  }
}

/** A receipt counts only where its block is canonical: in our window, or, below it, by the chain's own word. */
async function onCanonicalChain(context: ChainContext, receipts: readonly Receipt[]): Promise<readonly Receipt[]> {
  const hashAt = await canonicalHashes(
    context,
    receipts.map((receipt) => receipt.blockNumber),
  );
  return receipts.filter((receipt) => hashAt.get(receipt.blockNumber) === receipt.blockHash);
}

/** False: of some the chain could not say whose they are. They owe another look. */
async function record(ports: LanePorts, context: ChainContext, found: readonly Receipt[]): Promise<boolean> {
  const named = found.filter((receipt) => isNamed(context, receipt));
  const judged = named.length === 0 ? NONE : await belonging(ports, context, named);
  await recordOwn(ports, context, [...found.filter((receipt) => !named.includes(receipt)), ...judged.receipts]);
  return judged.open === 0;
}

interface Belonging {
  readonly receipts: readonly Receipt[];
  /** How many could not be judged. */
  readonly open: number;
}

/** What we signed says by its hash whose it is. What a caller, a signing node or an endpoint named might be anybody's. */
async function belonging(ports: LanePorts, context: ChainContext, named: readonly Receipt[]): Promise<Belonging> {
  const receipts: Receipt[] = [];
  let open = 0;
  for (const receipt of named) {
    const sent = await context.chain.transaction(receipt.txHash).catch(() => null);
    const indexed = context.hashes.get(receipt.txHash);
    if (sent === null) open++;
    else if (indexed === undefined) continue;
    else if (sent.from === indexed.lane.lane.signer && sent.nonce === indexed.tx.nonce) receipts.push(receipt);
    else disown(ports, context, indexed.tx, sent);
  }
  return { receipts, open };
}

const NONE: Belonging = { receipts: [], open: 0 };

function isNamed({ hashes }: ChainContext, receipt: Receipt): boolean {
  const attempts = hashes.get(receipt.txHash)?.tx.attempts ?? [];
  const named = attempts.find(({ txHash }) => txHash === receipt.txHash);
  return named !== undefined && (named.kind === "external" || named.nodeSigned === true);
}

/** Nothing more is to be learned from that hash; the transaction is still to be mined, by whatever comes at its nonce. */
function disown({ clock }: LanePorts, { hashes }: ChainContext, tx: Tracked, sent: ChainTransaction): void {
  hashes.delete(sent.txHash);
  // An endpoint lied about it; nobody who is to be told named it.
  if (tx.attempts.some(({ txHash, foreign }) => txHash === sent.txHash && foreign === true)) return;
  const text = `${sent.txHash} is another transaction: nonce ${sent.nonce} of ${sent.from}`;
  establish(tx, "HASH_OF_ANOTHER", { text, since: clock.now() });
}

async function recordOwn(ports: LanePorts, context: ChainContext, receipts: readonly Receipt[]): Promise<void> {
  const byLane = new Map<OwnedLane, Planned[]>();
  if (receipts.length > 0) await ports.failpoint("receipt.found");
  for (const found of receipts) {
    const indexed = context.hashes.get(found.txHash);
    if (indexed === undefined || indexed.tx.receipt !== null) continue;
    // From a chain that may not be ours: looked for again once that is known.
    const { lane, tx } = indexed;
    if (isUnsure(lane.pace)) {
      happened(tx, lookOwed);
      continue;
    }
    const receipt = withOwnContract(ports, lane, tx, found);
    if (receipt.contractAddress !== null) context.knownCode.deploy(receipt.contractAddress);
    const planned = byLane.get(lane) ?? [];
    byLane.set(lane, planned);
    planned.push(plan(tx, "mine", { receipt, lastError: null }));
    lane.mine(tx);
    if (lane.pace.window.kind === "closed") {
      // The node takes the next nonce now: the rest of the pass need not be waited for.
      lane.signing?.kick();
      lane.broadcasting?.kick();
    }
  }
  for (const [lane, planned] of byLane) void quietly(commitReceipts(ports, lane, planned));
}

/** The pass goes on: what it decides is written behind this, in the lane's order, and a failure reloads the lane. */
async function commitReceipts(ports: LanePorts, lane: OwnedLane, planned: readonly Planned[]): Promise<void> {
  await commitPlanned(ports, lane, planned);
  await ports.failpoint("receipt.committed");
}
