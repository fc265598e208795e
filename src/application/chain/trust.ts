/**
 * Decides whether an endpoint still serves the chain that a lane was used on. If a chain was reset, or an endpoint
 * answers falsely, there are three kinds of signs: another chain id, another first block, or a transaction count below
 * that of settled transactions deeper than any expected reorg. A sign counts only if more than half of the endpoints
 * show it. After one check with a sign, nothing is decided for the lane. After two in a row the lane stops: nothing is
 * sent, allocated or decided until two checks in a row find no sign.
 *
 * Reads: the chain's identity and counts, settled rows of the database. Writes: the chain's first block, once. A crash
 * leaves nothing: every owner checks before its first pass over a lane.
 */
import { countNotExceeded } from "../../domain/chain/counts.ts";
import { NO_DOUBT } from "../../domain/chain/doubt.ts";
import { chainJudged, chainLookOwed, isUnsure, type LanePace } from "../../domain/pace/lane-pace.ts";
import { lookOwed } from "../../domain/pace/transaction-pace.ts";
import { isDue } from "../../domain/pace/when.ts";
import { type ChainIdentity, ChainUnavailable } from "../../ports/chain.ts";
import type { LanePorts } from "../lane/lane-ports.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { TermOver } from "../lane/term.ts";
import { happened } from "../lane/tracked.ts";
import type { ChainContext } from "./chain-context.ts";

const SILENT = "an endpoint that is up gives no answer, and it depends on that";

/** Lanes that may be processed now. If the check of the chain's identity is due for a lane, it is made first. */
export async function trustedLanes(
  ports: LanePorts,
  context: ChainContext,
  lanes: readonly OwnedLane[],
): Promise<readonly OwnedLane[]> {
  if (context.follower.takeDiscontinuity()) for (const lane of lanes) happened(lane, chainLookOwed);
  const owing = lanes.filter(owesLook);
  if (owing.length === 0) return lanes;
  const nowMs = ports.clock.monotonicMs();
  const due = owing.filter((lane) => isDue(lane.pace.nextLook, nowMs));
  if (due.length > 0) await lookAll(ports, context, due);
  const trusted: OwnedLane[] = [];
  for (const lane of lanes) {
    // A lane for which the chain's identity is uncertain is left out of this pass and misses its blocks. So the lane's
    // receipts must be looked up later.
    if (owesLook(lane)) oweReceipts(lane);
    else trusted.push(lane);
  }
  return trusted;
}

/**
 * Checks the chain's identity when lanes are reconciled. Returns the lanes for which there is no sign of another chain.
 */
export async function trustedOnSight(
  ports: LanePorts,
  context: ChainContext,
  lanes: readonly OwnedLane[],
): Promise<ReadonlySet<OwnedLane>> {
  await lookAll(ports, context, lanes);
  return new Set(lanes.filter((lane) => !owesLook(lane)));
}

function owesLook(lane: OwnedLane) {
  return isUnsure(lane.pace);
}

async function lookAll(ports: LanePorts, context: ChainContext, lanes: readonly OwnedLane[]) {
  const failures: unknown[] = [];
  /**
   * Records an error and returns true if this program caused it. Returns false if the chain was unavailable or the
   * lane's term ended.
   */
  const note = (error: unknown) => {
    const isOurs = !(error instanceof ChainUnavailable || error instanceof TermOver);
    if (isOurs) failures.push(error);
    return isOurs;
  };
  try {
    const identity = await identityEvidence(context, lanes);
    // A lane whose count or rows cannot be read delays no other lane. The database is read only if a count is lower
    // than expected; until that read succeeds, the low count is evidence against the chain.
    const look = async (lane: OwnedLane) => {
      try {
        const evidence = identity ?? (await lane.term.during(countEvidence(ports, context, lane)));
        judge(ports, context, lane, evidence);
      } catch (error) {
        if (note(error)) happened(lane, chainLookOwed);
      }
    };
    await Promise.all(lanes.map(look));
    if (identity === null) await noteGenesis(ports, context, lanes);
  } catch (error) {
    note(error);
  }
  if (failures.length === 0) return;
  const { chainId } = context.chain;
  const message = `whether chain ${chainId} is still the one that was known could not be judged for ${failures.length} of ${lanes.length} lanes: ${String(failures[0])}`;
  context.passFailed(message);
}

/**
 * Evidence that the endpoints serve another chain than the known one; null if there is none, or if too few endpoints
 * show it.
 */
async function identityEvidence(context: ChainContext, lanes: readonly OwnedLane[]): Promise<string | null> {
  const { chain } = context;
  context.genesisHash ??= lanes.find(({ genesisHash }) => genesisHash !== null)?.genesisHash ?? null;
  const found = await chain.identity(context.genesisHash);
  const evidence = contradiction(context, found);
  if (evidence === null) {
    context.seenGenesis = found.genesisHash;
    return null;
  }
  return (await isShownByMost(context)) ? evidence : null;
}

/**
 * True if more than half of the endpoints contradict the known chain, or if the contradicting endpoint is the only one.
 * Throws if endpoints that did not answer could change the result.
 */
async function isShownByMost(context: ChainContext) {
  const answers = await context.chain.identityEverywhere();
  const said = answers.flatMap((given) => (given.kind === "says" ? contradiction(context, given.answer) : []));
  const against = said.filter((each) => each !== null).length;
  if (2 * against > answers.length || answers.length === 0) return true;
  if (2 * (against + answers.length - said.length) > answers.length) throw new ChainUnavailable(SILENT);
  return false;
}

function contradiction({ chain, genesisHash }: ChainContext, found: ChainIdentity) {
  if (found.chainId !== chain.chainId) return `chain ${found.chainId} answers where ${chain.chainId} should`;
  if (genesisHash === null || found.genesisHash === null || found.genesisHash === genesisHash) return null;
  return `the chain begins with ${found.genesisHash}, and we know one that begins with ${genesisHash}`;
}

/**
 * For an idle lane (nothing open, reserved or checked for reorgs) the check of the chain's identity is enough; its
 * count is not compared.
 */
async function countEvidence(ports: LanePorts, { counts }: ChainContext, lane: OwnedLane): Promise<string | null> {
  if (lane.idle) return null;
  const { signer } = lane.lane;
  const { count } = await counts.mined(signer, { atMostMs: 0 });
  if (count >= (lane.lowestOpen() ?? lane.cursor ?? 0)) return null;
  const settled = await ports.store.settledBelow(lane.lane);
  if (count >= settled) return null;
  // Counts are accepted from endpoints at any block height. An endpoint that is up may lag by a few blocks, but the
  // blocks of settled transactions are much older.
  const most = countNotExceeded(await counts.everywhere(signer, 0));
  if (most === null) throw new ChainUnavailable(SILENT);
  if (most >= settled) return null;
  return `the chain counts ${count} transactions of ${signer}, and ${settled} are settled beyond any reorg`;
}

function judge(ports: LanePorts, context: ChainContext, lane: OwnedLane, evidence: string | null) {
  const before = lane.pace;
  happened(lane, chainJudged, evidence, ports.clock.monotonicMs() + context.settings.pollIntervalMs);
  const { doubt } = lane.pace;
  if (doubt.stopped && !before.doubt.stopped) reportStop(ports, lane);
  if (doubt === NO_DOUBT && before.doubt !== NO_DOUBT) goOn(ports, lane, before);
}

function reportStop({ telemetry }: LanePorts, { lane, pace }: OwnedLane) {
  const message = `${pace.distrust}: nothing is sent, allocated or decided for ${lane.signer} until that is over`;
  telemetry.emit({ type: "alert", severity: "CRITICAL", code: "CHAIN_DISTRUSTED", message, lane });
}

function goOn(ports: LanePorts, lane: OwnedLane, before: LanePace) {
  oweReceipts(lane);
  lane.signing?.kick();
  lane.broadcasting?.kick();
  if (!before.doubt.stopped) return;
  const message = `the lane of ${lane.lane.signer} goes on: no more sign that ${before.distrust}`;
  ports.telemetry.emit({ type: "alert", severity: "WARNING", code: "CHAIN_TRUSTED_AGAIN", message, lane: lane.lane });
}

function oweReceipts(lane: OwnedLane) {
  for (const tx of lane.unmined.values()) happened(tx, lookOwed);
}

/**
 * The first owner of any lane on the chain stores the hash of the chain's first block; later owners compare theirs with
 * it.
 */
async function noteGenesis(ports: LanePorts, context: ChainContext, lanes: readonly OwnedLane[]) {
  const [lane] = lanes;
  const genesisHash = context.seenGenesis;
  if (context.genesisHash !== null || genesisHash === null || lane === undefined) return;
  try {
    await lane.term.write({ kind: "identify", genesisHash });
    // Compare with the stored hash, not with the one just written: another node may have written first, and from
    // another chain.
    context.genesisHash = (await ports.store.loadLane(lane.fence))?.genesisHash ?? null;
  } catch (error) {
    // The first block's hash is not stored yet, so there is nothing to compare with: check this lane again.
    happened(lane, chainLookOwed);
    throw error;
  }
  if (context.genesisHash !== genesisHash) for (const each of lanes) happened(each, chainLookOwed);
}
