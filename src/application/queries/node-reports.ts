/**
 * Writes the problems that only one node knows to the database, so that any node can show them. Written only if they
 * changed; no decision uses them. The report of a node that ended is kept for a while, and so are the rows about a lane
 * that a node handed over: from them, the lane's next owner reads when its problems began.
 */

import { keepNewest } from "../../domain/keep-newest.ts";
import type { Lane } from "../../domain/lane.ts";
import { signerAwaySince } from "../../domain/pace/lane-pace.ts";
import {
  ofAway,
  ofBalance,
  ofDisputes,
  ofDoubt,
  ofDrift,
  ofEndpoint,
  ofPriceDispute,
  ofRefused,
  ofStalled,
  ofTransaction,
  ofUnreachable,
  ofWatch,
} from "../../domain/troubles/find.ts";
import { NOWHERE, type Trouble } from "../../domain/troubles/rows.ts";
import { type AlertSubject, alertKey, SYMPTOMS, TROUBLES, type TroubleCode } from "../../domain/troubles/table.ts";
import { type Away, inSentence } from "../../domain/troubles/words.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TelemetryEvent } from "../../ports/telemetry.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import type { UnownedWatch } from "../cluster/unowned-watch.ts";
import type { OwnedLane } from "../lane/owned-lane.ts";
import { type FactCode, happened, type Tracked } from "../lane/tracked.ts";
import { silent } from "./silent.ts";

interface NodeReportPorts extends Pick<CallPorts, "clock" | "store" | "nodeId" | "chains" | "lanesOf"> {
  readonly instanceId: () => string;
  /** Alerts to show; if absent, none are shown here. */
  readonly alerts?: Pick<RecentAlerts, "shown">;
  /** Lanes that no node owns; if absent, none are shown here. */
  readonly unowned?: Pick<UnownedWatch, "look" | "rows">;
}

const EVERY_MS = 5_000;
/**
 * Maximum number of problems in a report. Further ones are in the logs; in the report they would only hide the worst.
 */
const MOST = 200;
/**
 * How long a report keeps the rows about a lane after its node handed it over. If the next owner finds the same problem
 * later, it has begun anew.
 */
const LEFT_MS = 60_000;

export class NodeReports {
  private readonly ports;
  /** The last written report, together with the id of the instance that wrote it, to detect changes. */
  private written = "";
  private nextMs = 0;
  /**
   * The instance under whose id this process last wrote a report, which the next one replaces; null if it has written
   * none.
   */
  private self: string | null = null;
  /**
   * The rows of the last report by id. They are remembered for the time when each problem began, because each new owner
   * of a lane finds the lane's problems anew.
   */
  private last: ReadonlyMap<string, Trouble> = new Map();

  constructor(ports: NodeReportPorts) {
    this.ports = ports;
  }

  /** Called on every beat. The beat does not wait for the database: if the write fails, a later beat repeats it. */
  look(): void {
    const nowMs = this.ports.clock.monotonicMs();
    if (nowMs < this.nextMs) return;
    this.nextMs = nowMs + EVERY_MS;
    const report = async () => {
      await silent(this.ports.unowned?.look());
      const found = await this.own();
      this.readBalances(found);
      this.write(found);
    };
    void silent(report());
  }

  /** Problems of all nodes: those of this node as found now, those of the others from their reports. */
  async all(): Promise<readonly Trouble[]> {
    const [own, reports] = await Promise.all([this.own(), this.ports.store.reports()]);
    const theirs = reports.flatMap(({ instanceId, findings }) => (instanceId === this.self ? [] : findings));
    return [...own, ...theirs].filter(({ leftMs }) => leftMs === undefined);
  }

  /** Since when no node owns the lane, and why; null if a node owns it, or this node has not noticed it yet. */
  unownedSince(lane: Lane): Away | null {
    const row = [...this.last.values()].find(
      (each) => isOfAll(each) && each.chainId === lane.chainId && each.signer === lane.signer,
    );
    // Rows about lanes that have an owner again have no facts.
    const { since = null, facts: { unowned: reason } = {} } = row ?? {};
    return since === null || reason === undefined ? null : { since, reason };
  }

  private write(findings: readonly Trouble[]) {
    const instanceId = this.ports.instanceId();
    const text = JSON.stringify([instanceId, findings.map(({ asOf: _, ...lasting }) => lasting)]);
    // There is nothing to report, and no earlier report of this instance to replace.
    const isSilence = findings.length === 0 && this.self !== instanceId;
    if (text === this.written || isSilence) return;
    const before = this.written;
    this.written = text;
    this.self = instanceId;
    this.ports.store.report({ instanceId, findings }).catch(() => {
      this.written = before;
    });
  }

  /**
   * This node's problems, each with the time when this node, or a node that reported it before, first saw it; also the
   * rows about lanes that this node has handed over (`leftMs`).
   */
  private async own(): Promise<readonly Trouble[]> {
    const { nodeId, alerts, unowned, store, clock } = this.ports;
    const found = [...(unowned?.rows() ?? []), ...nodeFindings(this.ports), ...(alerts?.shown() ?? [])].slice(0, MOST);
    const isNew = found.some((row) => !this.last.has(row.id) || isOfAll(row));
    const reports = isNew ? await Promise.all([store.endedReports(), store.reports()]) : [];
    const earlier = [...this.last.values(), ...reports.flat().flatMap(({ findings }) => findings)];
    const nowMs = clock.now().getTime();
    const dated = found.map((each) => {
      const known = [each, ...earlier].flatMap(({ id, since }) => (id === each.id && since?.getTime()) || []);
      if (each.over) return { ...each, nodeId };
      const since = new Date(Math.min(nowMs, ...known));
      this.dateBack(each, since);
      return { ...each, ...(isOfAll(each) ? {} : { nodeId }), since };
    });
    const left = [...this.last.values()].flatMap(({ facts: _, leftMs = nowMs, ...row }) => {
      const isOver = row.signer === null || nowMs - leftMs > LEFT_MS;
      return isOver || this.laneOf(row) !== undefined ? [] : [{ ...row, leftMs }];
    });
    this.last = new Map([...left, ...dated].map((row) => [row.id, row]));
    return [...this.last.values()];
  }

  /** Sets when a problem began in the state of the lane or chain, too: explanations read it there. */
  private dateBack(row: Trouble, since: Date) {
    const context = this.ports.chains.get(row.chainId ?? 0);
    if (row.code === "CHAIN_UNREACHABLE" && context?.reachable === false) context.unreachableSince = since;
    const lane = (row.code === "SIGNER_AWAY" || row.code === "SIGNER_LIES") && this.laneOf(row);
    if (lane) happened(lane, signerAwaySince, since);
  }

  /** The lane that a row is about, if this node owns it. Searches all lanes of a chain, so it is called for few rows. */
  private laneOf({ chainId, signer }: Pick<Trouble, "chainId" | "signer">) {
    return this.ports.lanesOf(chainId ?? 0).find(({ lane }) => lane.signer === signer);
  }

  /**
   * Reads the balances of signers that have a transaction with a problem: the advice depends on whether the signer can
   * pay.
   */
  private readBalances(found: readonly Trouble[]) {
    for (const { facts, txId, chainId, signer } of found) {
      const context = this.ports.chains.get(chainId ?? 0);
      if (facts === undefined || txId === null || signer === null || context?.reachable !== true) continue;
      void silent(context.balance(signer));
    }
  }
}

/** True if every node finds the problem in the database: the nodes have to agree on its start, and no node owns it. */
function isOfAll({ code }: Trouble) {
  return code === "LANE_UNOWNED";
}

/** Problems that only this node knows. They are taken from memory; neither the chain nor the database is read. */

export function nodeFindings({ chains, lanesOf }: Pick<CallPorts, "chains" | "lanesOf">): readonly Trouble[] {
  return [...chains].flatMap(([chainId, context]) => {
    const lanes = lanesOf(chainId);
    const ofLanes = lanes.flatMap((lane) => [...ofOwned(context, lane), ...ofWatched(context, lane)]);
    return [...ofChain(context, lanes), ...ofLanes];
  });
}

/** Open alerts about stuck transactions of the lane (loops/stuck-watch.ts). */
function ofWatched({ standing }: ChainContext, lane: OwnedLane): readonly Trouble[] {
  const codes = SYMPTOMS.filter((code) => standing.has({ code, lane: lane.lane }));
  if (codes.length === 0) return [];
  const head = lane.unmined.get(lane.headOfLine() ?? -1) ?? null;
  const waiting = head === null ? lane.pendingDepth() : lane.pendingBehind(head.nonce);
  const seen = { lane: lane.lane, head, oldestAt: lane.oldestPendingAt(), waiting };
  return codes.map((code) => ofWatch(code, seen));
}

/** Problems of a chain and of its endpoints. */
export function ofChain(context: ChainContext, lanes: readonly OwnedLane[]): readonly Trouble[] {
  const { follower, headSince: since, usualBlockMs: usualMs } = context;
  const { chainId } = context.chain;
  const waiting = lanes.reduce((sum, lane) => sum + lane.pendingDepth(), 0);
  const { prices } = context.disputes;
  return [
    ...(context.reachable ? [] : [ofUnreachable(chainId, context.unreachableSince, waiting)]),
    ...(context.isStalled(lanes) ? [ofStalled({ chainId, since, waiting }, follower.head?.number ?? 0, usualMs)] : []),
    ...(context.chain.health?.() ?? []).flatMap(({ url, status, behind }, index) =>
      status === "up" || status === "unknown" ? [] : [ofEndpoint({ chainId, index, url, status, behind })],
    ),
    ...ofDisputes(chainId, context.disputes.ofNote()),
    ...(prices === null ? [] : [ofPriceDispute(chainId, prices)]),
  ];
}

function ofOwned(context: ChainContext, lane: OwnedLane): readonly Trouble[] {
  const { signer, distrust, counts } = lane.pace;
  const waiting = lane.pendingDepth();
  const balance = context.knownBalances.get(lane.lane.signer);
  const threshold = context.settings.alertLowBalanceWei;
  // A transaction count that an endpoint reported, above the lane's next nonce, and that other endpoints have not
  // confirmed yet. They usually do within seconds, unless endpoints contradict each other.
  const { unproved } = counts;
  return [
    ...(signer.kind === "away" ? [ofAway({ ...signer, lane: lane.lane, waiting })] : []),
    ...(distrust === null ? [] : [ofDoubt(lane.lane, distrust, waiting)]),
    ...(threshold !== null && balance !== undefined && balance < threshold
      ? [ofBalance(lane.lane, balance, threshold)]
      : []),
    ...(unproved === null || lane.cursor === null ? [] : [ofDrift(lane.lane, unproved, lane.cursor)]),
    ...ofRefused(lane.lane, lane.refusals.all),
    ...[...lane.unmined.values()].flatMap((tx) => ofUnmined(context, lane, tx)),
  ];
}

/**
 * Problem code for each reason why a transaction does not progress; null if another row of the list already shows that
 * problem.
 */
const CODES: Readonly<Record<FactCode, TroubleCode | null>> = {
  FEE_CEILING_REACHED: "FEE_CEILING_REACHED",
  POLICY_LIMIT_REACHED: "POLICY_LIMIT_REACHED",
  MAX_ATTEMPTS_REACHED: "MAX_ATTEMPTS_REACHED",
  CANNOT_RESIGN: "CANNOT_RESIGN",
  RESENT_OFTEN: "RESENT_OFTEN",
  NONCE_HOLE: null,
  INSUFFICIENT_FUNDS: "INSUFFICIENT_FUNDS",
  HASH_OF_ANOTHER: null,
  REFUSED_FOR_GOOD: "NODE_REFUSED",
};

function ofUnmined(context: ChainContext, lane: OwnedLane, tx: Tracked): readonly Trouble[] {
  const { txId, nonce, status, lostSightAt, createdAt } = tx;
  const { signer } = lane.lane;
  const balance = context.knownBalances.get(signer);
  const minedCount = context.counts.lastKnown(signer).latest;
  const facts = {
    ...(balance !== undefined && { balance: `${balance}` }),
    ...(minedCount !== null && { minedCount }),
  };
  const about = { lane: lane.lane, txId, nonce, open: lane.pendingBehind(nonce) + 1, facts };
  if (status.subState === "UNKNOWN_SUBMIT_RESULT") {
    const text = "a node may have signed and sent it, and its answer was lost; it is looked for";
    return [ofTransaction("SUBMIT_RESULT_UNKNOWN", { ...about, since: lostSightAt ?? createdAt }, text)];
  }
  for (const [fact, { text, since }] of tx.facts) {
    const code = CODES[fact];
    if (code !== null) return [ofTransaction(code, { ...about, since }, text)];
  }
  return [];
}

/**
 * Rows for alerts that no other row of the list shows. A lasting alert is shown until it is resolved, with the values
 * of the last check. An alert about a single event is shown as past, for a quarter of an hour after it was last raised.
 * Alerts that last as long as a known state are left out, because that state has its own row.
 */

const SHOWN_FOR_MS = 15 * 60_000;
/**
 * Maximum number of alerts kept of each kind; the oldest are dropped, so that an alert storm does not fill the memory.
 */
const MOST_ALERTS = 200;

type Alert = Extract<TelemetryEvent, { readonly type: "alert" }>;

export class RecentAlerts {
  private readonly clock;
  private readonly standing = new Map<string, Trouble>();
  private readonly past = new Map<string, { readonly trouble: Trouble; readonly lastMs: number }>();

  constructor(clock: Pick<Clock, "now" | "monotonicMs">) {
    this.clock = clock;
  }

  observe(event: TelemetryEvent): void {
    if (event.type === "alert.resolved") this.standing.delete(idOf(event));
    if (event.type === "alert.renewed") {
      const known = this.standing.get(idOf(event));
      if (known !== undefined) this.standing.set(known.id, { ...known, ...figuresOf(event.message, this.clock.now()) });
    }
    if (event.type !== "alert") return;
    const end = TROUBLES[event.code].ends;
    const trouble = troubleOf(event, this.clock.now());
    if (end === "said") {
      const since = this.standing.get(trouble.id)?.since ?? trouble.since;
      keepNewest(this.standing, trouble.id, { ...trouble, since }, MOST_ALERTS);
    }
    const past = { trouble: { ...trouble, over: true }, lastMs: this.clock.monotonicMs() };
    if (end === "moment") keepNewest(this.past, trouble.id, past, MOST_ALERTS);
  }

  /** Lasting alerts come first, so that they are shown if the list is cut. */
  shown(): readonly Trouble[] {
    const nowMs = this.clock.monotonicMs();
    for (const [id, { lastMs }] of this.past) if (nowMs - lastMs > SHOWN_FOR_MS) this.past.delete(id);
    return [...this.standing.values(), ...[...this.past.values()].map(({ trouble }) => trouble).reverse()];
  }
}

const idOf = (subject: AlertSubject) => `alert:${alertKey(subject)}`;

function troubleOf(alert: Alert, since: Date): Trouble {
  const { severity, code, message, lane, txId, chainId } = alert;
  const where = { ...NOWHERE, ...(chainId !== undefined && { chainId }), ...lane, ...(txId !== undefined && { txId }) };
  return { ...where, id: idOf(alert), severity, code, ...figuresOf(message, since), since };
}

function figuresOf(message: string, asOf: Date): Pick<Trouble, "sentence" | "asOf"> {
  return { sentence: inSentence(message.replace(/[.]$/, "")), asOf };
}
