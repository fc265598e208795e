/** Overviews for operators, across all lanes and nodes. Any node can serve these calls; none of them calls a chain. */
import { defined } from "../../domain/defined.ts";
import { FencepostError, invalid } from "../../domain/errors.ts";
import { ANYBODY, isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { Address, Lane } from "../../domain/lane.ts";
import { spansOf } from "../../domain/nonces/nonce-spans.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Between, FoundReservation, FoundTransaction, SearchTerms } from "../../ports/sight-store.ts";
import type { AttentionQuery, Found, HeldQuery, NonceRulerQuery } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { given } from "../requests/fields.ts";
import { parseChainId, parseSigner } from "../requests/normalise.ts";
import { AttentionDesk } from "./attention.ts";
import { explanationOf } from "./explain.ts";
import type { ExplainPorts } from "./explained-lane.ts";
import type { NodeReports } from "./node-reports.ts";
import { OverviewBoard } from "./overview.ts";

export type SightPorts = CallPorts &
  Pick<ExplainPorts, "kills" | "reports"> & { readonly reports: Pick<NodeReports, "all"> };

const DEFAULT_LIMIT = 100;

/**
 * Creates the calls for operators' overviews. `limits` are the limits of the calling API key; if absent, the caller may
 * see everything.
 */
export function createSights(ports: SightPorts) {
  const { store, reports } = ports;
  const explain = (txId: string) => explanationOf({ ...ports, remembered: true }, txId);
  const desk = new AttentionDesk({ ...ports, findings: () => reports.all(), explain });
  const board = new OverviewBoard(ports);
  return {
    /** Everything that needs an operator, worst first. */
    attention: (query?: AttentionQuery, limits?: Limits) => desk.view(query, limits),
    /** The overview in numbers: counts, rates and the state of the chains. */
    overview: (query?: HeldQuery, limits?: Limits) => board.view(query, limits),
    /** Search by any id, or by the beginning of one. */
    search: (query: { readonly q: string; readonly limit?: number }, limits?: Limits) =>
      findAnything(ports, query, limits),
    /**
     * A lane's nonces, grouped by what holds them. UNKNOWN_CHAIN if this node does not serve the chain. UNKNOWN_SIGNER
     * if the lane was never used and this node does not hold the key.
     */
    nonceRuler: (signer: string, query?: NonceRulerQuery) => rulerOf(ports, signer, query),
    /** Notices with or without an acknowledgement, newest first. */
    notices: async (
      { limit = DEFAULT_LIMIT, ...query }: { signer?: string; chainId?: number; open?: boolean; limit?: number } = {},
      limits: Limits = ANYBODY,
    ) => {
      const signer = given(query.signer, (value) => parseSigner(ports.codec, value, "signer"));
      const found = await store.notices(defined({ ...query, limit, signer }));
      return isLimited(limits) ? found.filter(({ lane }) => lane !== null && isWithin(limits, lane)) : found;
    },
    /** Events of nodes, lanes and the database, newest first. */
    clusterHistory: async ({ limit = DEFAULT_LIMIT }: { readonly limit?: number } = {}, limits: Limits = ANYBODY) => {
      const past = await store.past(limit);
      return { ...past, takeovers: past.takeovers.filter(({ lane }) => isWithin(limits, lane)) };
    },
  };
}

/** A lane's nonces, grouped by what holds them, one range at a time. */

/** Maximum number of nonces in one response. */
const MOST = 2_000;
/** Number of final nonces below the open ones that are shown by default. */
const BELOW = 100;

export async function rulerOf(
  ports: Pick<CallPorts, "codec" | "store" | "signer" | "chains">,
  name: string,
  query: NonceRulerQuery = {},
) {
  const { store, chains } = ports;
  const signer = parseSigner(ports.codec, name, "signer");
  const lane = { chainId: parseChainId([...chains.keys()], query.chainId), signer };
  const { cursor, firstOpen } = await store.nonces(lane, 0, -1);
  if (cursor === null && !ports.signer.addresses().includes(signer)) {
    throw new FencepostError("UNKNOWN_SIGNER", `no node holds the key of ${name}`);
  }
  const final = firstOpen ?? cursor ?? 0;
  const { from, to } = stretch(query, final, cursor ?? 0);
  const held = await store.nonces(lane, from, to);
  const counts = chains.get(lane.chainId)?.counts.lastKnown(signer);
  const mined = counts?.latest ?? null;
  // Nonces from the lane's next nonce (`cursor`) on are not allocated yet.
  const last = Math.min(to, (cursor ?? 0) - 1);
  // `mined`: the chain's last known count. `final`: every nonce below it is final.
  return { lane, from, to, cursor, mined, minedAsOf: counts?.asOf ?? null, final, spans: spansOf(from, last, held) };
}

function stretch({ from, to }: NonceRulerQuery, final: number, cursor: number) {
  const end = Math.max(0, cursor - 1);
  const near = Math.min(final - BELOW, to ?? Number.MAX_SAFE_INTEGER);
  const first = from ?? Math.max(0, near, to === undefined ? 0 : to - MOST + 1);
  const last = to ?? Math.max(first, Math.min(end, first + MOST - 1));
  if (last < first) throw invalid("to", "must not be below from");
  if (last - first >= MOST) throw invalid("to", `is too far from ${first}: at most ${MOST} nonces are shown at once`);
  return { from: first, to: last };
}

/** Search by any id or its beginning. The form of the text decides which index is used; nothing is scanned. */

const FOUND_AT_MOST = 20;
/** Number of hits read for a limited key, which may see only some of them. */
const LOOKED_THROUGH = 500;
/** Number of signers that are found by their configured name at most. */
const MOST_NAMED = 5;
/** Minimum number of characters to search for: shorter beginnings match too much. */
const LEAST_OF_UUID = 4;
const LEAST_OF_SIGNER = 4;
const UUID_DIGITS = 32;
const HASH = /^0x[0-9a-f]{64}$/;
const SIGNER_START = /^0x[0-9a-f]{0,40}$/;
const SIGNER_AND_NONCE = /^(0x[0-9a-f]{2,40})[:/ ]+([0-9]{1,15})$/;
const NONCE = /^#?([0-9]{1,15})$/;

export async function findAnything(
  { store, settings }: Pick<SightPorts, "store" | "settings">,
  { q, limit = FOUND_AT_MOST }: { readonly q: string; readonly limit?: number },
  limits: Limits = { signers: null, chains: null },
): Promise<readonly Found[]> {
  const names = settings.signerNames ?? new Map<Address, string>();
  const text = q.trim();
  if (text === "") throw invalid("q", "is empty: give an id, or its first characters");
  // For a limited key, read more hits: those of other keys may come first, and are filtered out below.
  const looked = isLimited(limits) ? LOOKED_THROUGH : limit;
  const terms = { ...termsOf(text), limit: looked };
  const [hits, nodes, ...named] = await Promise.all([
    store.search(terms),
    nodesLike(store, text),
    ...signersNamed(names, text).map((signer) => store.search({ signers: beginning(signer), limit: looked })),
  ]);
  const lanesOf = (lanes: readonly Lane[]) =>
    lanes.filter((lane) => isWithin(limits, lane)).map((lane) => ofSigner(lane, names.get(lane.signer)));
  const found: readonly Found[] = [
    ...lanesOf(named.flatMap(({ lanes }) => lanes)),
    ...hits.transactions.filter(({ lane }) => isWithin(limits, lane)).map(ofTransaction),
    ...lanesOf(hits.lanes),
    ...hits.reservations.filter(({ lane }) => isWithin(limits, lane)).map(ofReservation),
    ...nodes,
  ];
  return found.slice(0, limit);
}

/** Converts a searched text into search terms. Exported for its tests. */
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

/** Range of ids that begin with these digits: ids are compared byte by byte. */
function uuidsLike(text: string): Between | null {
  const digits = text.replaceAll("-", "");
  if (!/^[0-9a-f]+$/.test(digits) || digits.length < LEAST_OF_UUID || digits.length > UUID_DIGITS) return null;
  // If the searched text has dashes, they must be in the same places as in a UUID.
  if (text.includes("-") && !asUuid(digits.padEnd(UUID_DIGITS, "0")).startsWith(text.replace(/-$/, ""))) return null;
  return { from: asUuid(digits.padEnd(UUID_DIGITS, "0")), to: asUuid(digits.padEnd(UUID_DIGITS, "f")) };
}

function asUuid(digits: string) {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The highest Unicode character, as upper bound of a prefix search: columns are compared by their bytes. */
const LAST = "\u{10FFFF}";

function beginning(text: string): Between {
  return { from: text, to: `${text}${LAST}` };
}

/** The signers whose name begins with a text, in any casing. */
function signersNamed(names: ReadonlyMap<Address, string>, text: string): readonly Address[] {
  const isLike = (name: string) => name.toLowerCase().startsWith(text.toLowerCase());
  return [...names].flatMap(([signer, name]) => (isLike(name) ? [signer] : [])).slice(0, MOST_NAMED);
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

function ofSigner(lane: Lane, name: string | undefined): Found {
  const { chainId, signer } = lane;
  const label = `signer ${name === undefined ? signer : `${name}, ${signer},`} on chain ${chainId}`;
  return { kind: "signer", label, ...lane };
}

function ofReservation({ lane, reservationId, nonce, state }: FoundReservation): Found {
  return { kind: "reservation", label: `reservation of nonce ${nonce}: ${state}`, reservationId, ...lane, nonce };
}
