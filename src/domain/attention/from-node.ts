/** Troubles that only a node knows of: its endpoints, its signers, and what the loops of its lanes have met. */
import type { AlertCode } from "../alerts.ts";
import type { CauseCode, Disputed } from "../explain/situation.ts";
import { ether } from "../explain/words.ts";
import { type Lane, laneKey } from "../lane.ts";
import type { UnconfirmedRefusal } from "../unconfirmed-refusal.ts";
import { behind, NOWHERE, type Severity, type Trouble } from "./troubles.ts";

/** An endpoint that is not used as it should be. */
export interface EndpointTrouble {
  readonly chainId: number;
  /** Its place in the configuration: two may have one host. */
  readonly index: number;
  readonly url: string;
  readonly status: "failing" | "behind" | "foreign";
  readonly behind: number | null;
}

const ENDPOINTS = {
  failing: ["WARNING", "RPC_ENDPOINT_DOWN", "does not answer, and is skipped until it answers a probe"],
  behind: ["WARNING", "RPC_BEHIND", "does not keep up with the others, and is skipped until it does"],
  foreign: ["CRITICAL", "RPC_WRONG_CHAIN", "serves another chain, and is not used"],
} as const satisfies Readonly<Record<EndpointTrouble["status"], readonly [Severity, AlertCode, string]>>;

export function ofEndpoint({ chainId, index, url, status, behind: blocks }: EndpointTrouble): Trouble {
  const [severity, code, what] = ENDPOINTS[status];
  const lag = status === "behind" && blocks !== null && blocks > 0 ? ` (${blocks} blocks)` : "";
  const sentence = `The endpoint ${url} of chain ${chainId} ${what}${lag}.`;
  return { ...NOWHERE, id: `endpoint:${chainId}:${index}:${url}`, severity, code, sentence, chainId, endpoint: url };
}

export function ofUnreachable(chainId: number, since: Date | null, waiting: number): Trouble {
  const held = waiting === 0 ? "" : ` ${waiting === 1 ? "One transaction waits" : `${waiting} transactions wait`}.`;
  const sentence = `No endpoint of chain ${chainId} answers: nothing is sent there, and nothing decided.${held}`;
  const id = `chain:${chainId}`;
  return { ...NOWHERE, id, severity: "CRITICAL", code: "CHAIN_UNREACHABLE", sentence, since, chainId, waiting };
}

export interface StalledChain {
  readonly chainId: number;
  readonly head: number;
  readonly since: Date | null;
  readonly usualMs: number | null;
  readonly waiting: number;
}

/** Its age is told by `since` alone: a sentence that changes by itself would be written to the database again and again. */
export function ofStalled({ chainId, head, since, usualMs, waiting }: StalledChain): Trouble {
  const usual = usualMs === null ? "" : `, where one usually comes every ${seconds(usualMs)}`;
  const sentence = `Chain ${chainId} stands still: its endpoints answer, and no block has come after ${head}${usual}. What is sent there is not mined, and nothing is decided.${behind(waiting)}`;
  const id = `stalled:${chainId}`;
  return { ...NOWHERE, id, severity: "ERROR", code: "CHAIN_STALLED", sentence, since, chainId, waiting };
}

function seconds(ms: number): string {
  return `${Number((ms / 1_000).toPrecision(2))} s`;
}

export function ofDoubt(lane: Lane, why: string, waiting: number): Trouble {
  const sentence = `The chain that answers is not the one that this lane knows, and nothing is decided by it: ${why}.${behind(waiting)}`;
  const id = `doubt:${laneKey(lane)}`;
  return { ...NOWHERE, ...lane, id, severity: "CRITICAL", code: "CHAIN_DOUBTED", sentence, waiting };
}

export interface DisputedBlock {
  readonly code: "RPC_DISAGREES" | "RPC_BEHIND";
  readonly number: number;
  readonly since: Date;
}

/** All of one kind are one trouble: an endpoint that lies about one block lies about many. */
export function ofDisputes(chainId: number, disputes: readonly DisputedBlock[]): readonly Trouble[] {
  return (["RPC_DISAGREES", "RPC_BEHIND"] as const).flatMap((code) => {
    const own = disputes.filter((each) => each.code === code);
    const [first] = own;
    if (first === undefined) return [];
    const blocks =
      own.length === 1 ? `block ${first.number}` : `${own.length} blocks, the first of them ${first.number}`;
    const what =
      code === "RPC_DISAGREES"
        ? `What the endpoints of chain ${chainId} say of ${blocks} cannot all be true, and decides nothing.`
        : `An endpoint of chain ${chainId} has not said for a minute what ${blocks} holds, and nothing is decided by it.`;
    const severity: Severity = code === "RPC_DISAGREES" ? "ERROR" : "WARNING";
    return [
      { ...NOWHERE, id: `dispute:${chainId}:${code}`, severity, code, sentence: what, since: first.since, chainId },
    ];
  });
}

export function ofPriceDispute(chainId: number, { answers, since }: Pick<Disputed, "answers" | "since">): Trouble {
  const sentence = `What the endpoints of chain ${chainId} say of the price of gas cannot all be true, and the lower price is offered first: ${answers.join("; ")}.`;
  const id = `dispute:${chainId}:price`;
  return { ...NOWHERE, id, severity: "ERROR", code: "RPC_DISAGREES", sentence, since, chainId };
}

/** One trouble for the lane: an endpoint that lies about one transaction lies about many. */
export function ofRefused(lane: Lane, refusals: readonly UnconfirmedRefusal[]): readonly Trouble[] {
  const [first, ...others] = refusals.filter(({ waitsFor }) => waitsFor === "agreement");
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : ` So it is of ${others.length} more.`;
  const sentence = `An endpoint refuses a transaction that was accepted, and another does not: it waits until they agree (${first.reason}).${more}`;
  const { txId, since } = first;
  const id = `refused:${laneKey(lane)}`;
  return [{ ...NOWHERE, ...lane, id, severity: "ERROR", code: "RPC_DISAGREES", sentence, since, txId }];
}

export interface AwaySigner {
  readonly lane: Lane;
  readonly since: Date;
  readonly reason: string;
  readonly waiting: number;
  /** It answers with something else than it is asked for. */
  readonly lies: boolean;
}

export function ofAway({ lane, since, reason, waiting, lies }: AwaySigner): Trouble {
  const what = lies
    ? "The signer answers with something else than it was asked to sign"
    : "Nothing is signed for this signer";
  const kind = lies ? SIGNER_LIES : SIGNER_AWAY;
  const id = `away:${laneKey(lane)}`;
  return { ...NOWHERE, ...lane, id, ...kind, sentence: `${what}: ${reason}.${behind(waiting)}`, since, waiting };
}

const SIGNER_AWAY = { severity: "ERROR", code: "SIGNER_AWAY" } as const;
const SIGNER_LIES = { severity: "CRITICAL", code: "SIGNER_LIES" } as const;

/** The chain counts more than was given out here, as somebody says; the endpoints do not agree on it yet. */
export function ofDrift(
  lane: Lane,
  { count, since }: { readonly count: number; readonly since: Date },
  cursor: number,
): Trouble {
  const sentence = `An endpoint counts ${count} transactions of this signer, ${cursor} were given out here, and the endpoints do not agree on it: creates are refused until they do.`;
  const id = `drift:${laneKey(lane)}`;
  return { ...NOWHERE, ...lane, id, severity: "ERROR", code: "NONCE_DRIFT", sentence, since };
}

export function ofBalance(lane: Lane, balance: bigint, threshold: bigint): Trouble {
  const sentence = `The signer holds ${ether(balance)}, less than the ${ether(threshold)} that was set as the least.`;
  const id = `balance:${laneKey(lane)}`;
  return { ...NOWHERE, ...lane, id, severity: "WARNING", code: "LOW_BALANCE", sentence };
}

/** What the loop of its lane has met with a transaction that others may wait for. */
export interface BlockedTransaction {
  readonly lane: Lane;
  readonly txId: string;
  readonly nonce: number;
  readonly code: CauseCode | AlertCode;
  readonly text: string;
  readonly since: Date;
  readonly waiting: number;
}

const GRAVE: ReadonlySet<CauseCode | AlertCode> = new Set(["INSUFFICIENT_FUNDS"]);

export function ofBlocked({ text, ...blocked }: BlockedTransaction): Trouble {
  const { lane, txId, nonce, code, since, waiting } = blocked;
  return {
    ...NOWHERE,
    ...lane,
    ...{ id: `tx:${txId}`, severity: GRAVE.has(code) ? "ERROR" : "WARNING", code, txId, nonce, since, waiting },
    sentence: `Nonce ${nonce}: ${text}.${behind(waiting)}`,
  };
}

/** What the watch over lanes has told of and is not over. */
export interface Watched {
  readonly lane: Lane;
  readonly code: AlertCode;
  readonly head: { readonly txId: string; readonly nonce: number; readonly createdAt: Date } | null;
  readonly waiting: number;
}

export function ofWatch({ lane, code, head, waiting }: Watched): Trouble {
  const common = { ...NOWHERE, ...lane, severity: "WARNING", code, waiting } as const;
  if (head === null || code === "PENDING_DEEP") {
    const sentence = `More transactions of this signer are not mined than was set as the most: ${waiting + 1}.`;
    return { ...common, id: `watch:${code}:${laneKey(lane)}`, sentence };
  }
  const { txId, nonce, createdAt: since } = head;
  const sentence = `Nonce ${nonce} has waited longer than was set as the most.${behind(waiting)}`;
  return { ...common, id: `tx:${txId}`, sentence, since, txId, nonce };
}
