import type { SubmitAnswer } from "../../../domain/chain/answers.ts";
import { type NodeError, revertDataOf, textsOf } from "../codec/error-texts.ts";
import { SUBMISSION_WORDINGS, type Wording } from "./submission-wordings.ts";

/**
 * Maps a node's refusal of `eth_sendRawTransaction` to what may be done next. Only the text counts: clients use the
 * codes differently (-32005 is a gas limit in Besu and a rate limit at Infura). A text that is not recognised, or that
 * matches two meanings, is `unknown` (invariant I7).
 */
export function classifySubmission(error: NodeError): Exclude<SubmitAnswer, "accepted"> {
  if (looksReverted(error)) return "unknown";
  const answers = new Set(recogniseWordings(error).map((wording) => wording.answer));
  const [answer, another] = answers;
  return answer === undefined || another !== undefined ? "unknown" : answer;
}

/**
 * Gas limit for one transaction that a refusal names; null if the refusal is about something else, or names no number.
 */
export function namedGasCap(error: NodeError): bigint | null {
  if (!recogniseWordings(error).some(({ perTransaction }) => perTransaction === true)) return null;
  for (const text of textsOf(error)) {
    const [, cap, most, limit] = NAMED_CAP.exec(text) ?? [];
    const digits = cap ?? most ?? limit;
    if (digits !== undefined) return BigInt(digits);
  }
  return null;
}

/**
 * Number in the texts of geth "(cap: 16777216, tx: …)", revm "the cap (16777216)", Nethermind and EDR "cap of …", Besu
 * "at most …", Base ", limit …".
 */
const NAMED_CAP = /\bcap(?: of|:)? \(?(\d{1,20})\b|\bat most (\d{1,20})\b|, limit (\d{1,20})\b/i;

/** Every wording of the table that begins a clause of the error text. */
export function recogniseWordings(error: NodeError): readonly Wording[] {
  const clauses = textsOf(error).flatMap(clausesOf);
  return MATCHERS.filter(({ pattern }) => clauses.some((clause) => pattern.test(clause))).map(({ wording }) => wording);
}

/**
 * True if the transaction was executed and reverted: in a simulation before the pool, or in a block already (a chain
 * that mines at once). Then the text is the contract's own: `require(false, "nonce too low")` is not about nonces. It
 * is no final rejection either: the call may succeed in another state.
 */
function looksReverted(error: NodeError): boolean {
  return revertDataOf(error.data) !== null || textsOf(error).some((text) => REVERTED.test(text));
}

const REVERTED = /\brevert(ed|s)?\b|vm exception|execution failed/i;

/**
 * Splits a text at punctuation. Clients append details after a colon; gateways add prefixes or quotes. A wording must
 * match the beginning of a clause, so that "authority nonce too low" and "block already known" do not match "nonce too
 * low" and "already known". An apostrophe inside a word and a dot inside a number do not split.
 */
function clausesOf(text: string): readonly string[] {
  return text
    .toLowerCase()
    .split(CLAUSE_ENDS)
    .map((clause) => clause.trim())
    .filter((clause) => clause !== "");
}

const CLAUSE_ENDS = /[:;,="()[\]{}|\\<>\n\r]|\.(?=\s|$)|(?<!\w)'|'(?!\w)/;

const MATCHERS = SUBMISSION_WORDINGS.map((wording) => ({ wording, pattern: toPattern(wording.says) }));

function toPattern(says: string): RegExp {
  const parts = says.toLowerCase().split("…");
  const source = parts.map((part) => part.trim().replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(" .* ");
  return new RegExp(`^${source}(?:\\s|$)`);
}
