/** What a person has to look at, how bad it is, and what helps. */
import type { AlertCode } from "../alerts.ts";
import type { CauseCode } from "../explain/situation.ts";
import type { Address } from "../lane.ts";

/** Worst first. */
export const SEVERITIES = ["CRITICAL", "ERROR", "WARNING"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What neither a transaction's explanation nor an alert has a word for. */
export const TROUBLE_CODES = ["NODE_LOST"] as const;
export type TroubleCode = (typeof TROUBLE_CODES)[number] | CauseCode | AlertCode;

/** One request that helps. `body` lacks the reason, which is the operator's. */
export interface OfferedAction {
  readonly action: string;
  readonly label: string;
  readonly method: "POST" | "DELETE" | "GET";
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>> | null;
}

export interface Trouble {
  /** The same for as long as it is the same trouble. */
  readonly id: string;
  readonly severity: Severity;
  readonly code: TroubleCode;
  /** What is wrong and what it holds up. */
  readonly sentence: string;
  readonly since: Date | null;
  readonly chainId: number | null;
  readonly signer: Address | null;
  readonly txId: string | null;
  readonly nonce: number | null;
  readonly nodeId: string | null;
  /** Masked. */
  readonly endpoint: string | null;
  /** How many transactions wait behind it. */
  readonly waiting: number;
  readonly actions: readonly OfferedAction[];
  /** It tells of a moment: somebody should know of it, and nothing of it lasts. */
  readonly over: boolean;
}

/** Where it is about nothing in particular. */
export const NOWHERE = {
  ...{ since: null, chainId: null, signer: null, txId: null, nonce: null, nodeId: null, endpoint: null },
  ...{ waiting: 0, actions: [], over: false },
} as const satisfies Partial<Trouble>;

/** Worst first, then what holds up most, then the oldest; by id where nothing else tells them apart. */
export function ranked(troubles: readonly Trouble[]): readonly Trouble[] {
  return [...troubles].sort(
    (a, b) =>
      SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) ||
      b.waiting - a.waiting ||
      (a.since?.getTime() ?? 0) - (b.since?.getTime() ?? 0) ||
      (a.id < b.id ? -1 : 1),
  );
}

/** One of each id, the worse: two nodes, or two sources, may tell of the same trouble. */
export function once(troubles: readonly Trouble[]): readonly Trouble[] {
  const seen = new Set<string>();
  return ranked(troubles).filter(({ id }) => !seen.has(id) && seen.add(id));
}

/** " 3 transactions wait behind it." */
export function behind(waiting: number): string {
  if (waiting === 0) return "";
  return waiting === 1 ? " One transaction waits behind it." : ` ${waiting} transactions wait behind it.`;
}
