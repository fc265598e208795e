/**
 * Suggests a known name for an unknown one: by spelling, or by the name that other tools use (ethers, viem and web3 use
 * `from`, `gasLimit` and `input`). A suggestion is shown, never applied.
 */

import { type FencepostError, invalid, invalidWithHint } from "../errors.ts";

/**
 * Names that other tools use, in lower case, for each of our names. A name is suggested only if it is valid at the
 * field's place. If a word may mean several of our names, the first one here is used.
 */
const SYNONYMS: Readonly<Record<string, string>> = {
  signer: "from sender account wallet address",
  chainId: "network networkid",
  requestId: "id idempotencykey externalid",
  txId: "id",
  payload: "tx transaction call",
  transactions: "transaction txs requests items",
  metadata: "meta tags",
  to: "address recipient receiver contract target destination",
  bytecode: "code",
  data: "input calldata code",
  value: "amount wei",
  gas: "gaslimit maxgas",
  maxFeePerGas: "maxfee feecap gasfeecap",
  maxPriorityFeePerGas: "tip priorityfee maxpriorityfee gastipcap",
  type: "txtype",
  function: "functionname method signature",
  args: "params parameters arguments inputs",
  txHash: "hash transactionhash",
  rawTransaction: "transaction raw signedtransaction",
  ttl: "expiresin",
  reason: "comment note",
  state: "status",
  after: "cursor offset since",
  limit: "pagesize count",
  order: "sort",
  wait: "timeout",
  include: "expand",
};

export interface UnknownName {
  readonly name: string;
  /** Dotted path of the unknown name, from the root of the input. */
  readonly path: string;
  /** Names that are valid at this path. */
  readonly known: readonly string[];
  /** The error text, such as "is not a known field". */
  readonly complaint: string;
  /** Names that are valid elsewhere in the input, each with the path of the place where it is valid. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

/** Error for an unknown field, parameter or member: with a suggestion, or with the valid names if there is none. */
export function unknownName({ name, path, known, complaint, elsewhere }: UnknownName): FencepostError {
  const place = elsewhere?.get(name);
  if (place !== undefined) return invalidWithHint(path, complaint, `did you mean \`${place}\`?`);
  const near = nearestName(name, known) ?? elsewhere?.get(nearestName(name, elsewhere.keys()) ?? "") ?? null;
  if (near !== null) return invalidWithHint(path, complaint, `did you mean \`${near}\`?`);
  return invalid(path, known.length === 0 ? complaint : `${complaint} (known: ${known.join(", ")})`);
}

/** The closest known name; null if none is close. */
export function nearestName(name: string, known: Iterable<string>, plain = plainly): string | null {
  const wanted = plain(name);
  const names = [...known];
  const isMeant = (ours: string) => SYNONYMS[ours]?.split(" ").includes(wanted) === true && names.includes(ours);
  const synonym = Object.keys(SYNONYMS).find(isMeant);
  if (synonym !== undefined) return synonym;
  const judged = names.map((each) => ({ name: each, distance: editDistance(wanted, plain(each)) }));
  const [best] = judged.sort((one, other) => one.distance - other.distance);
  return best !== undefined && best.distance <= tolerated(wanted.length) ? best.name : null;
}

/**
 * Allowed edit distance between two names: one below four letters, otherwise a third of the letters, but at least two
 * (a swap counts as two).
 */
function tolerated(length: number) {
  return length < 4 ? 1 : Math.max(2, Math.floor(length / 3));
}

/** Normalises a name: casing and separators are ignored. */
function plainly(name: string) {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** Levenshtein distance, one row at a time. Long input is cut: no known name is that long. */
function editDistance(a: string, b: string) {
  const wanted = a.slice(0, 64);
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...wanted].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return (row[b.length] ?? 0) + (a.length - wanted.length);
}
