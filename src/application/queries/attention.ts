/**
 * Everything that needs an operator, worst first: from the database, from this node, and from the other nodes' reports.
 * A row about a transaction shows the cause, the summary and the actions from the transaction's explanation.
 * Explanations use the values that the loops last read.
 */
import { ANYBODY, isLimited, type Limits } from "../../domain/keys/principal.ts";
import { ofAwaiting, ofHeld, ofKill, ofLane, ofNode, ofNotice, ofSignature } from "../../domain/troubles/find.ts";
import { revisionOf } from "../../domain/troubles/revision.ts";
import { condensed, isOfTransaction, type Trouble } from "../../domain/troubles/rows.ts";
import type { Explanation } from "../../domain/troubles/situation.ts";
import { ofSubscriber } from "../../domain/troubles/subscribers.ts";
import { rowOf, SEVERITIES } from "../../domain/troubles/table.ts";
import { behind } from "../../domain/troubles/words.ts";
import type { Ports } from "../../ports/ports.ts";
import type { AttentionQuery, AttentionView } from "../api.ts";
import { sharedLook } from "../chain/answers.ts";

interface AttentionPorts extends Pick<Ports, "clock"> {
  readonly store: Pick<Ports["store"], "troubles" | "kills" | "instances" | "subscribers" | "signatures">;
  /** Problems of this node, and those that the other nodes reported. */
  readonly findings: () => Promise<readonly Trouble[]>;
  /** Explains a transaction by values that were read before; does not call the chain. */
  readonly explain: (txId: string) => Promise<Explanation>;
}

const DEFAULT_LIMIT = 100;
/** Maximum number of rows of each kind in one read of the database. */
const READ_AT_MOST = 500;
/**
 * Maximum number of transactions explained per refresh, because an explanation takes half a dozen reads; the next
 * refresh explains others.
 */
const EXPLAINED_AT_ONCE = 20;
const EXPLAINED_FOR_MS = 3_000;

export class AttentionDesk {
  private readonly ports;
  private readonly look;
  private explained = new Map<
    string,
    { readonly explanation: Explanation; readonly atMs: number; readonly asOf: Date }
  >();

  constructor(ports: AttentionPorts) {
    this.ports = ports;
    this.look = sharedLook(ports.clock, () => this.draw());
  }

  view(query: AttentionQuery = {}, limits: Limits = ANYBODY): Promise<AttentionView> {
    const { limit = DEFAULT_LIMIT, chainId } = query;
    return this.look(query, ({ asOf, troubles, unread }) => {
      const isAsked = (each: Trouble) => chainId === undefined || each.chainId === null || each.chainId === chainId;
      const seen = troubles.filter((each) => isSeen(each, limits) && isAsked(each));
      const lasting = seen.filter(({ over }) => !over);
      const newestFirst = (a: Trouble, b: Trouble) => (b.since?.getTime() ?? 0) - (a.since?.getTime() ?? 0);
      const past = seen
        .filter(({ over }) => over)
        .toSorted(newestFirst)
        .slice(0, limit);
      const items = lasting.slice(0, limit);
      // A limited key must not learn how many rows other keys have.
      const beyond = isLimited(limits) ? 0 : unread;
      const more = lasting.length - items.length + beyond;
      return {
        revision: revisionOf([items.map(unchanging), more, past.map(({ id, since }) => [id, since])]),
        asOf,
        items,
        more,
        past,
      };
    });
  }

  private async draw() {
    const { store } = this.ports;
    const [known, kills, instances, subscribers, signatures, findings] = await Promise.all([
      store.troubles(READ_AT_MOST),
      store.kills([]),
      store.instances(),
      store.subscribers(),
      store.signatures({ state: "AWAITING_APPROVAL", limit: READ_AT_MOST }),
      this.ports.findings(),
    ]);
    // A dead node is shown only if it still owns lanes: no live node holds their keys or reaches their chain. If
    // something waits on such a lane, the lane has its own row.
    const former = new Set(findings.map(({ code, nodeId }) => (code === "LANE_UNOWNED" ? nodeId : null)));
    const silent = instances.filter(({ dead, expired, lanes, nodeId }) =>
      dead ? lanes > 0 && !former.has(nodeId) : expired,
    );
    const found = condensed([
      ...kills.filter(({ ended }) => !ended).map(ofKill),
      ...silent.map(ofNode),
      ...known.lanes.flatMap((lane) => ofLane(lane, known.at)),
      ...known.held.map(ofHeld),
      ...known.awaiting.map(ofAwaiting),
      ...known.notices.map(ofNotice),
      ...signatures.map(ofSignature),
      ...subscribers.flatMap(ofSubscriber),
      ...findings,
    ]);
    await this.explainSome(found);
    const troubles = condensed(found.map((each) => this.inItsWords(each)));
    // `unread`: how many more problems the database has than were read.
    return { asOf: known.at, troubles, unread: known.more };
  }

  /** Explains the worst rows first; recent explanations are reused. */
  private async explainSome(troubles: readonly Trouble[]) {
    const { clock } = this.ports;
    const [nowMs, asOf] = [clock.monotonicMs(), clock.now()];
    const ids = troubles.filter(isOfTransaction).map(({ txId }) => txId as string);
    const kept = new Map([...this.explained].filter(([txId]) => ids.includes(txId)));
    const due = ids.filter((txId) => nowMs - (kept.get(txId)?.atMs ?? Number.NEGATIVE_INFINITY) >= EXPLAINED_FOR_MS);
    const unexplained = due.filter((txId) => !kept.has(txId));
    const next = [...unexplained, ...due.filter((txId) => kept.has(txId))].slice(0, EXPLAINED_AT_ONCE);
    const made = await Promise.all(
      next.map(async (txId) => [txId, await this.ports.explain(txId).catch(() => null)] as const),
    );
    for (const [txId, explanation] of made) {
      if (explanation !== null) kept.set(txId, { explanation, atMs: nowMs, asOf });
    }
    this.explained = kept;
  }

  private inItsWords(trouble: Trouble): Trouble {
    const { explanation, asOf } = (isOfTransaction(trouble) && this.explained.get(trouble.txId ?? "")) || {};
    const cause = explanation?.causes[0];
    if (explanation === undefined || cause === undefined || asOf === undefined) return trouble;
    const { severity } = rowOf(cause.code);
    // The lane progresses, and it is only notable how long its lowest open transaction has been the lowest: report
    // nothing else.
    if (severity === null && trouble.code === "HEAD_OF_LINE_OLD") return trouble;
    const { summary } = explanation;
    const { nodeId = trouble.nodeId } = cause.data ?? {};
    const code = severity === null ? trouble.code : cause.code;
    // The row and the explanation show the same start for the same cause.
    const [first, second] = code === trouble.code ? [trouble.since, cause.since] : [cause.since, trouble.since];
    return {
      ...trouble,
      code,
      severity: SEVERITIES.find((each) => each === severity || each === trouble.severity) ?? trouble.severity,
      // If the summary already mentions the transactions behind it, do not add their number.
      sentence: summary.includes("behind it") ? summary : `${summary}${behind(trouble.waiting)}`,
      since: first ?? second ?? null,
      asOf,
      nodeId: typeof nodeId === "string" ? nodeId : null,
      actions: explanation.actions.map(({ code: _, scope: __, ...request }) => request),
    };
  }
}

/**
 * A row without a signer or a chain is visible to every key. A row about a subscriber is visible to keys without limits
 * only, because a subscriber may get the outcomes of every signer.
 */
function isSeen({ signer, chainId, subscriber }: Trouble, limits: Limits) {
  if (subscriber !== undefined && isLimited(limits)) return false;
  const ofSigner = signer === null || limits.signers?.has(signer) !== false;
  return ofSigner && (chainId === null || limits.chains?.has(chainId) !== false);
}

/**
 * The fields of a row whose change counts as a change of the list. Its texts are excluded, because they contain ages,
 * which change constantly.
 */
function unchanging({ id, severity, code, waiting, actions }: Trouble) {
  return [id, severity, code, waiting, actions.map(({ action, body }) => [action, body])];
}
