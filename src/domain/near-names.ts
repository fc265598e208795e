/**
 * The name that somebody probably meant by one that is not known: by spelling, or by what other tools call the same thing
 * (ethers, viem and web3 say `from`, `gasLimit` and `input`). A guess is told, never acted on.
 */

import { type FencepostError, invalid, invalidWithHint } from "./errors.ts";

/** By a lower-case spelling without separators: what it is called here. Only names that the place knows are offered. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  from: ["signer"],
  sender: ["signer"],
  account: ["signer"],
  wallet: ["signer"],
  address: ["signer", "to"],
  network: ["chainId"],
  networkid: ["chainId"],
  id: ["requestId", "txId"],
  idempotencykey: ["requestId"],
  externalid: ["requestId"],
  tx: ["payload"],
  transaction: ["payload", "transactions", "rawTransaction"],
  txs: ["transactions"],
  requests: ["transactions"],
  items: ["transactions"],
  call: ["payload"],
  meta: ["metadata"],
  tags: ["metadata"],
  recipient: ["to"],
  receiver: ["to"],
  contract: ["to"],
  target: ["to"],
  destination: ["to"],
  input: ["data"],
  calldata: ["data"],
  code: ["bytecode", "data"],
  amount: ["value"],
  wei: ["value"],
  gaslimit: ["gas"],
  maxgas: ["gas"],
  maxfee: ["maxFeePerGas"],
  feecap: ["maxFeePerGas"],
  gasfeecap: ["maxFeePerGas"],
  tip: ["maxPriorityFeePerGas"],
  priorityfee: ["maxPriorityFeePerGas"],
  maxpriorityfee: ["maxPriorityFeePerGas"],
  gastipcap: ["maxPriorityFeePerGas"],
  txtype: ["type"],
  functionname: ["function"],
  method: ["function"],
  signature: ["function"],
  params: ["args"],
  parameters: ["args"],
  arguments: ["args"],
  inputs: ["args"],
  hash: ["txHash"],
  transactionhash: ["txHash"],
  raw: ["rawTransaction"],
  signedtransaction: ["rawTransaction"],
  expiresin: ["ttl"],
  comment: ["reason"],
  note: ["reason"],
  status: ["state"],
  cursor: ["after"],
  offset: ["after"],
  since: ["after"],
  pagesize: ["limit"],
  count: ["limit"],
  sort: ["order"],
  timeout: ["wait"],
  expand: ["include"],
};

export interface UnknownName {
  readonly name: string;
  /** Dotted, from the root of what was given. */
  readonly path: string;
  /** What may stand there. */
  readonly known: readonly string[];
  /** "is not a known field": what is wrong with it. */
  readonly complaint: string;
  /** Names that are known at another place, by how that place is written. */
  readonly elsewhere?: ReadonlyMap<string, string>;
}

/** The refusal of a field, parameter or member that is not known: with what was probably meant, else with what there is. */
export function unknownName({ name, path, known, complaint, elsewhere }: UnknownName): FencepostError {
  const place = elsewhere?.get(name);
  if (place !== undefined) return invalidWithHint(path, complaint, `did you mean \`${place}\`?`);
  const near = nearestName(name, known) ?? elsewhere?.get(nearestName(name, elsewhere.keys()) ?? "") ?? null;
  if (near !== null) return invalidWithHint(path, complaint, `did you mean \`${near}\`?`);
  return invalid(path, known.length === 0 ? complaint : `${complaint} (known: ${known.join(", ")})`);
}

/** The known name that is probably meant; null where none is near. */
export function nearestName(name: string, known: Iterable<string>, plain = plainly): string | null {
  const wanted = plain(name);
  const names = [...known];
  const synonym = Object.hasOwn(SYNONYMS, wanted) ? SYNONYMS[wanted]?.find((each) => names.includes(each)) : undefined;
  if (synonym !== undefined) return synonym;
  const judged = names.map((each) => ({ name: each, distance: editDistance(wanted, plain(each)) }));
  const [best] = judged.sort((one, other) => one.distance - other.distance);
  return best !== undefined && best.distance <= tolerated(wanted.length) ? best.name : null;
}

/** A third of the letters may be wrong, two in a short name (a swap counts as two); beyond that a guess is noise. */
function tolerated(length: number): number {
  return length < 4 ? 1 : Math.max(2, Math.floor(length / 3));
}

/** Casing and separators are how two spellings of one name differ. */
function plainly(name: string): string {
  return name.replace(/[_-]/g, "").toLowerCase();
}

/** Levenshtein, one row at a time. Long input is cut: nothing known is that long. */
function editDistance(a: string, b: string): number {
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
