/** Formats numbers, times and problems as text for people. */
import type { Kill } from "../cluster/kills.ts";

const UNITS: readonly (readonly [number, string])[] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

function duration(seconds: number) {
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

/** Formats the time that has passed since `since` as text. */
export function spanInWords(since: Date, now: Date): string {
  return duration(Math.max(0, now.getTime() - since.getTime()) / 1_000);
}

export function agoInWords(then: Date, now: Date): string {
  return `${spanInWords(then, now)} ago`;
}

export function untilInWords(then: Date, now: Date): string {
  return `in ${duration(Math.max(0, then.getTime() - now.getTime()) / 1_000)}`;
}

export function gwei(wei: bigint): string {
  return `${decimal(wei, 9)} gwei`;
}

export function ether(wei: bigint): string {
  return `${decimal(wei, 18)} ETH`;
}

function decimal(value: bigint, digits: number) {
  const text = value.toString().padStart(digits + 1, "0");
  const fraction = text.slice(-digits).replace(/0+$/, "");
  return fraction === "" ? text.slice(0, -digits) : `${text.slice(0, -digits)}.${fraction}`;
}

/** Makes a sentence: a capital at the beginning, a full stop at the end. */
export function inSentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Text to append about waiting transactions, such as ` 3 transactions wait behind it.` */
export function behind(waiting: number): string {
  if (waiting === 0) return "";
  return waiting === 1 ? " One transaction waits behind it." : ` ${waiting} transactions wait behind it.`;
}

// Texts about problems. Each is used both in explanations of transactions and on the attention list.

export function killText({ signer, actor, reason }: Pick<Kill, "signer" | "actor" | "reason">): string {
  const what = signer === null ? "everything is stopped" : "this signer is stopped";
  return `${what} on all nodes (${actor}: ${reason}): nothing of it is sent`;
}

/** `why`: who suspended the lane and for what reason, or that the database may have lost commits. */
export function suspensionText(why: string | null): string {
  return `its lane is suspended${why === null ? "" : ` (${why})`}: nothing of it is sent`;
}

export const MAY_LACK_COMMITS =
  "the database may lack commits: compare the lane with the chain before you resume it" as const;

export function holeText({ nonce, detail }: { nonce: number; detail: string | null }): string {
  const why = detail === null ? "" : ` (${detail})`;
  return `the chain wants nonce ${nonce} next, and no transaction holds it${why}: everything above waits`;
}

export function doubtText(why: string): string {
  return `the chain that answers is not the one that this lane knows, and nothing is decided by it: ${why}`;
}

/** Since when something does not work, and why. */
export interface Away {
  readonly since: Date;
  readonly reason: string;
}

/** Since when the key holder of a signer cannot sign, and why. */
export interface SignerAbsence extends Away {
  /** True if the signer returned something other than what it was requested to sign. */
  readonly lies: boolean;
}

/**
 * Text about a signer whose key holder cannot sign, or signs something else. With `now` it includes for how long. The
 * attention list omits `now`, because its rows show `since` separately.
 */
export function awayText({ since, reason, lies }: SignerAbsence, now?: Date): string {
  if (lies) return `its signer answers with something else than it was asked to sign: ${reason}`;
  const what = now === undefined ? "does not sign" : `has not signed for ${spanInWords(since, now)}`;
  return `its signer ${what}: ${reason}`;
}

/** Text about a lane without an owner. `why`: the reason; null if the lane may only be between two owners. */
export function unownedText(why: string | null): string {
  return why === null ? "no node acts for its signer at this moment" : `no node acts for its signer: ${why}`;
}
