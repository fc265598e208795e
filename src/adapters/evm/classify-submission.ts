import type { SubmitAnswer } from "../../domain/answers.ts";
import { type NodeError, revertDataOf, textsOf } from "./error-texts.ts";
import { SUBMISSION_WORDINGS, type Wording } from "./submission-wordings.ts";

/**
 * Names a node's refusal of `eth_sendRawTransaction` by what it permits next. Only the words count: codes are used
 * differently by every client (-32005 is a gas limit in Besu and a rate limit at Infura). An answer that is not
 * recognised, or says two things at once, is `unknown` (I7).
 */
export function classifySubmission(error: NodeError): Exclude<SubmitAnswer, "accepted"> {
  if (looksReverted(error)) return "unknown";
  const answers = new Set(recogniseWordings(error).map((wording) => wording.answer));
  const [answer, another] = answers;
  return answer === undefined || another !== undefined ? "unknown" : answer;
}

/** The most gas of one transaction that a refusal for asking for more names; null: it says nothing of it, or no number. */
export function namedGasCap(error: NodeError): bigint | null {
  if (!recogniseWordings(error).some(({ perTransaction }) => perTransaction === true)) return null;
  for (const text of textsOf(error)) {
    const [, cap, most, limit] = NAMED_CAP.exec(text) ?? [];
    const digits = cap ?? most ?? limit;
    if (digits !== undefined) return BigInt(digits);
  }
  return null;
}

/** geth "(cap: 16777216, tx: …)", revm "the cap (16777216)", Nethermind and EDR "cap of …", Besu "at most …", Base ", limit …". */
const NAMED_CAP = /\bcap(?: of|:)? \(?(\d{1,20})\b|\bat most (\d{1,20})\b|, limit (\d{1,20})\b/i;

/** Every wording of the table that a clause of the error begins with. */
export function recogniseWordings(error: NodeError): readonly Wording[] {
  const clauses = textsOf(error).flatMap(clausesOf);
  return MATCHERS.filter(({ pattern }) => clauses.some((clause) => pattern.test(clause))).map(({ wording }) => wording);
}

/**
 * The transaction was executed and reverted, in a simulation before the pool or in a block already (a chain that mines
 * at once). Its text is the contract's: `require(false, "nonce too low")` says nothing of nonces. And another state may
 * let it pass, so it is no rejection for good either.
 */
function looksReverted(error: NodeError): boolean {
  return revertDataOf(error.data) !== null || textsOf(error).some((text) => REVERTED.test(text));
}

const REVERTED = /\brevert(ed|s)?\b|vm exception|execution failed/i;

/**
 * Clauses are what stands between punctuation: clients append details after a colon, gateways put prefixes before one
 * or wrap the text in quotes. Matching only the beginning of a clause keeps "authority nonce too low" or "block already
 * known" apart from what they contain. An apostrophe within a word and a dot within a number do not separate.
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
