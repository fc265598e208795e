/** Finds by any id, or by how it begins. Which index can answer is decided by what was typed; nothing is scanned. */
import { invalid } from "../../domain/errors.ts";
import { isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import { type Address, laneKey } from "../../domain/lane.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Between, FoundReservation, FoundTransaction, SearchTerms } from "../../ports/sight-store.ts";
import type { Found } from "../api.ts";

const DEFAULT_LIMIT = 20;
/** For a key that may see some of it. */
const LOOKED_THROUGH = 500;
/** Fewer characters are the beginning of too much to be looked for. */
const LEAST_OF_UUID = 4;
const LEAST_OF_SIGNER = 4;
const UUID_DIGITS = 32;
const HASH = /^0x[0-9a-f]{64}$/;
const SIGNER_START = /^0x[0-9a-f]{0,40}$/;
const SIGNER_AND_NONCE = /^(0x[0-9a-f]{2,40})[:/ ]+([0-9]{1,15})$/;
const NONCE = /^#?([0-9]{1,15})$/;

export async function findAnything(
  { store }: Pick<Ports, "store">,
  { q, limit = DEFAULT_LIMIT }: { readonly q: string; readonly limit?: number },
  limits: Limits = { signers: null, chains: null },
): Promise<readonly Found[]> {
  const text = q.trim();
  if (text === "") throw invalid("q", "is empty: give an id, or how it begins");
  // What others have found may stand before its own, and is left out below.
  const looked = isLimited(limits) ? LOOKED_THROUGH : limit;
  const terms = { ...termsOf(text), limit: looked };
  const [hits, nodes] = await Promise.all([store.search(terms), nodesLike(store, text)]);
  const found: readonly Found[] = [
    ...hits.transactions.filter(({ lane }) => isWithin(limits, lane)).map(ofTransaction),
    ...hits.lanes.filter((lane) => isWithin(limits, lane)).map(ofSigner),
    ...hits.reservations.filter(({ lane }) => isWithin(limits, lane)).map(ofReservation),
    ...nodes,
  ];
  return found.slice(0, limit);
}

/** Exported for its table of tests. */
export function termsOf(text: string): Omit<SearchTerms, "limit"> {
  const lower = text.toLowerCase();
  if (HASH.test(lower)) return { txHash: lower as `0x${string}`, requestIds: beginning(text) };
  const [, signer, ofSigner] = SIGNER_AND_NONCE.exec(lower) ?? [];
  if (signer !== undefined) return { nonce: { nonce: Number(ofSigner), signers: beginning(signer) } };
  const requestIds = { requestIds: beginning(text) };
  const [, nonce] = NONCE.exec(lower) ?? [];
  const ofNonce = nonce === undefined ? {} : { nonce: { nonce: Number(nonce), signers: beginning("0x") } };
  const signers = SIGNER_START.test(lower) && lower.length >= LEAST_OF_SIGNER ? { signers: beginning(lower) } : {};
  const ids = uuidsLike(lower);
  return { ...requestIds, ...ofNonce, ...signers, ...(ids !== null && { txIds: ids, reservationIds: ids }) };
}

/** Ids are compared byte by byte, so whatever begins with these digits lies between the two. */
function uuidsLike(text: string): Between | null {
  const digits = text.replaceAll("-", "");
  if (!/^[0-9a-f]+$/.test(digits) || digits.length < LEAST_OF_UUID || digits.length > UUID_DIGITS) return null;
  // Where it has a dash, it has it where ids have theirs.
  if (text.includes("-") && !asUuid(digits.padEnd(UUID_DIGITS, "0")).startsWith(text.replace(/-$/, ""))) return null;
  return { from: asUuid(digits.padEnd(UUID_DIGITS, "0")), to: asUuid(digits.padEnd(UUID_DIGITS, "f")) };
}

function asUuid(digits: string) {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The last character there is: columns are compared by their bytes. */
const LAST = "\u{10FFFF}";

function beginning(text: string): Between {
  return { from: text, to: `${text}${LAST}` };
}

async function nodesLike(store: Ports["store"], text: string): Promise<readonly Found[]> {
  const lower = text.toLowerCase();
  const alive = (await store.instances()).filter(({ dead }) => !dead);
  const like = alive.filter(({ nodeId, instanceId }) => nodeId.toLowerCase().startsWith(lower) || instanceId === lower);
  return like.map(({ nodeId, version }) => ({ kind: "node", nodeId, label: `node ${nodeId}, version ${version}` }));
}

function ofTransaction({ lane, txId, requestId, nonce, state, subState }: FoundTransaction): Found {
  const status = subState === null ? state : `${state}/${subState}`;
  const label = `${requestId ?? txId}: ${status}${nonce === null ? "" : ` at nonce ${nonce}`}`;
  return { kind: "transaction", label, txId, ...lane, ...(nonce !== null && { nonce }) };
}

function ofSigner(lane: { readonly chainId: number; readonly signer: Address }): Found {
  return { kind: "signer", label: `signer ${laneKey(lane).replace(/^(\d+):(.*)$/, "$2 on chain $1")}`, ...lane };
}

function ofReservation({ lane, reservationId, nonce, state }: FoundReservation): Found {
  return { kind: "reservation", label: `reservation of nonce ${nonce}: ${state}`, reservationId, ...lane, nonce };
}
