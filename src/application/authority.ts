/**
 * Permissions of the API, call by call. The scope of a call is checked earlier (contract/calls). A caller that names a
 * lane it may not use gets 403. For the id of an object that it may not see it gets 404, as if the object did not
 * exist.
 */

import type { Kill } from "../domain/cluster/kills.ts";
import { FencepostError } from "../domain/errors.ts";
import {
  ANYBODY,
  type CreateLimits,
  forbidden,
  isLimited,
  isOwn,
  isWithin,
  type Limits,
  type Principal,
  refuseLimited,
  refuseOutside,
  type Scope,
} from "../domain/keys/principal.ts";
import type { Address, Lane } from "../domain/lane.ts";
import type { Explanation } from "../domain/troubles/situation.ts";
import type { Created, Include, RequestQuery, TransactionAction } from "./api.ts";
import { type KeyRates, type RateRule, tooFast } from "./key-rates.ts";
import type { FencepostApi } from "./operations/calls.ts";

const managing = unlimited("cannot manage API keys");

/** Seven permission rules, and the calls under each. A call without a rule does not compile. */
const RULES: { readonly [Name in keyof FencepostApi]: Rule<Name> } = {
  // 1. Open: every authenticated caller may make these calls.
  ...{ nodes: everybody, readiness: everybody, newIds: everybody },
  // `firstHash` is open to every caller: its argument is the id of a transaction that the caller has just created.
  ...{ firstHash: everybody, me: asKey },

  // 2. Made: a call that creates something on behalf of the API key is held to its limits and its rate.
  ...{ create: made, submitSigned: made, reserveNonce: made, requestSignature: made },
  ...{ createBatch: madeMany, createNamed: madeMany, checkPolicy: asked },

  // 3. Found: a call that looks something up by id answers "not found" if the key may not see the object.
  ...{ transaction: found("transaction"), reservation: found("reservation"), signature: found("signature") },
  ...{ transactionByRequest: found("transaction"), explain: explained, signedAs: foundSigned },

  // 4. Listed: a call that returns a list leaves out the entries that the key may not see.
  completions: listedInFeed,
  ...{ signer: listedLanes, leases: listedLeases, namedSigners: asKey },
  ...{ policies: ownPolicies, policyUsage: ownUsage },
  // For the next calls, the application itself leaves out everything outside the key's limits.
  ...{ overview: narrowed, search: narrowed, clusterHistory: narrowed, attention: namedAndNarrowed },
  ...{ notices: namedAndNarrowed, actOnLane: narrowed, acknowledge: narrowed },
  ...{ transactions: namedAndNarrowed, signers: namedAndNarrowed, signatures: namedAndNarrowed },
  ...{ costs: namedAndNarrowed, history: namedAndNarrowed },
  // A webhook of a limited key gets the outcomes of its own signers and chains, and the key sees no other webhook.
  ...{ webhooks: narrowed, webhook: narrowed, addWebhook: narrowed, changeWebhook: narrowed },
  ...{ removeWebhook: narrowed, pauseWebhook: narrowed, resumeWebhook: narrowed, replayWebhook: narrowed },
  ...{ testWebhook: narrowed, rotateWebhook: narrowed },

  // 5. Named: a call that names a lane or a chain is refused if the lane or chain is outside the key's limits.
  ...{ nonceRuler: namedLane, askChain: namedChain("readsPerSecond"), passSigned: namedChain(null) },

  // 6. Owned: owners may cancel, or use a reservation; all else needs `operate`, approvals `approve`.
  decideSignature: decidedBySecond,
  ...{ act: decided, submitReserved: ownReservation, markUsed: ownReservation, releaseNonce: ownReservation },

  // 7. Unlimited: only a key without limits may grant or change rights, so that no key extends its own.
  ...{ keys: managing, addKey: managing, revokeKey: managing },
  ...{ applyPolicies: unlimited("cannot change policies"), putAbis: unlimited("cannot change ABIs") },
  // The entries name the contracts of all signers. A limited key gets its own transactions in words.
  abis: unlimited("cannot read the ABIs of all contracts"),
  ...{ kill: stopping, endKill: stopping },
};

/** Actions that a key may take on its own transactions without the scope `operate`. */
const OWNERS_ACTIONS: ReadonlySet<TransactionAction> = new Set(["cancel"]);

/** Actions that need a different key from the one that created the transaction. */
const FOUR_EYES: ReadonlySet<TransactionAction> = new Set(["approve", "reject"]);

type Call<Name extends keyof FencepostApi> = FencepostApi[Name];
/** Wraps an API call with the restrictions of one key. */
type Rule<Name extends keyof FencepostApi> = (call: Call<Name>, key: Key) => Call<Name>;

/** The calling principal, and the unrestricted API. */
interface Key {
  readonly principal: Principal;
  readonly api: FencepostApi;
  /** The key's recent rate of creates and chain reads. */
  readonly rates: KeyRates;
  /** True if the key is limited to some signers or chains. */
  readonly limited: boolean;
  /** True if the key may act on everything, so that the owner of a transaction need not be read. */
  readonly mayAll: boolean;
}

interface OnLane {
  readonly lane: Lane;
}

interface Owned extends OnLane {
  readonly owner: string | null;
}

/** The API restricted to the rights of this principal. */
export function limitedTo(principal: Principal, api: FencepostApi, rates: KeyRates): FencepostApi {
  if (principal === ANYBODY) return api;
  const limited = isLimited(principal);
  const key: Key = { principal, api, rates, limited, mayAll: principal.scopes.has("operate") && !limited };
  const calls = Object.entries(RULES).map(([name, rule]) => {
    const call = (...given: never[]) => (api[name as keyof FencepostApi] as (...given: never[]) => unknown)(...given);
    return [name, (rule as (call: unknown, key: Key) => unknown)(call, key)];
  });
  return Object.fromEntries(calls) as FencepostApi;
}

function everybody<C>(call: C) {
  return call;
}

function asKey<Shown>(call: (principal?: Principal) => Promise<Shown>, { principal }: Key): typeof call {
  return () => call(principal);
}

type Make<Request, Made> = (request: Request, owner?: string | null, limits?: CreateLimits) => Promise<Made>;

/**
 * Counts each request that needs a nonce against the API key's rate. The node that receives the request counts it, not
 * the lane's owner.
 */
function made<Request, Made>(make: Make<Request, Made>, { principal, rates }: Key): Make<Request, Made> {
  if (principal.createsPerSecond === null) return (request) => make(request, principal.name, principal);
  return async (request) => {
    countOne(principal, rates);
    return make(request, principal.name, principal);
  };
}

/**
 * For a batch that exceeds the key's rate: accepts the first creates and refuses all later ones. When the caller
 * retries the refused ones, they still come after the accepted ones.
 */
function madeMany<Request>(
  make: Make<readonly Request[], readonly (Created | FencepostError)[]>,
  { principal, rates }: Key,
): typeof make {
  return async (requests) => {
    const taken = rates.take(principal, requests.length);
    const results = taken === 0 ? [] : await make(requests.slice(0, taken), principal.name, principal);
    return [...results, ...requests.slice(taken).map(() => tooFast(principal))];
  };
}

/**
 * A policy dry run counts against the rate like a create, because both call the chain. Dry runs for another API key
 * need `operate` or `admin`, because refusals reveal how much of its limits that key has used.
 */
function asked(call: Call<"checkPolicy">, { principal, rates }: Key): Call<"checkPolicy"> {
  return async (request, key) => {
    const mayAskForOthers = principal.scopes.has("operate") || principal.scopes.has("admin");
    if (key !== undefined && key !== principal.name && !mayAskForOthers) {
      throw forbidden("scope:operate", "checking the policies for another API key requires the scope operate");
    }
    refuseOthersUse(principal, key);
    countOne(principal, rates);
    return call(request, key ?? principal.name, principal);
  };
}

/** Looks up a row by its id or its request id; a row outside the key's limits is reported as not found. */
function found(kind: string) {
  return <By extends string | RequestQuery, Found extends OnLane>(
    call: (by: By, include?: readonly Include[]) => Promise<Found>,
    { principal, limited }: Key,
  ): typeof call =>
    async (by, include) => {
      if (typeof by !== "string") refuseNamed(principal, by);
      const what = typeof by === "string" ? `${kind} ${by}` : `${kind} with request id ${by.requestId}`;
      // Check first that the key may see the transaction: the chain is not queried about one that is hidden from it.
      if (limited && include?.includes("logs") === true) shown(principal, await call(by), what);
      return shown(principal, await call(by, include), what);
    };
}

function foundSigned(call: Call<"signedAs">, { principal }: Key): Call<"signedAs"> {
  return async (chainId, txHash) => {
    const signed = await call(chainId, txHash);
    return signed !== null && isWithin(principal, signed.lane) ? signed : null;
  };
}

function explained(call: Call<"explain">, { principal, limited, api }: Key): Call<"explain"> {
  return async (txId) => {
    if (!limited) return call(txId);
    shown(principal, await api.transaction(txId), `transaction ${txId}`);
    return byNonceOnly(txId, await call(txId, { blockerByNonce: true }));
  };
}

/**
 * Completions that the key may not see are removed from a page, so a page may be short or empty. Sequence numbers keep
 * their place: `next` advances past the removed ones.
 */
function listedInFeed(call: Call<"completions">, { principal, limited }: Key): Call<"completions"> {
  return async (query) => {
    const page = await call(query);
    return limited ? { ...page, items: seen(principal, page.items), filtered: true } : page;
  };
}

function listedLanes(call: Call<"signer">, { principal }: Key): Call<"signer"> {
  return async (signer, options) => {
    refuseNamed(principal, { signer });
    return seen(principal, await call(signer, options));
  };
}

function listedLeases(call: Call<"leases">, { principal }: Key): Call<"leases"> {
  return async () => seen(principal, await call());
}

/**
 * A key that is limited to signers sees no policies of other signers or of other keys, because they would reveal their
 * business.
 */
function ownPolicies(call: Call<"policies">, { principal, limited }: Key) {
  return async () => {
    const inForce = await call();
    if (!limited || inForce.policies === null) return inForce;
    const { signers, keys, ...rest } = inForce.policies;
    const isVisible = (signer: string) => principal.signers?.has(signer.toLowerCase() as Address) !== false;
    const isMine = (key: string) => key === principal.name;
    const narrow = { ...only(signers, isVisible, "signers"), ...only(keys, isMine, "keys") };
    return { ...inForce, policies: { ...rest, ...narrow } };
  };
}

/** Policy usage, restricted to the policies that `ownPolicies` shows. */
function ownUsage(call: Call<"policyUsage">, { principal, limited }: Key): Call<"policyUsage"> {
  return async (query = {}) => {
    refuseNamed(principal, query);
    refuseOthersUse(principal, query.key);
    const { at, signers, keys } = await call(query);
    if (!limited) return { at, signers, keys };
    const isMine = (key: string, chainId: number) => key === principal.name && principal.chains?.has(chainId) !== false;
    return { at, signers: seen(principal, signers), keys: keys.filter(({ key, chainId }) => isMine(key, chainId)) };
  };
}

type Narrow<Query, Shown> = (query: Query, limits?: Limits) => Promise<Shown>;

function narrowed<Query, Shown>(call: (query: Query, key?: Principal) => Promise<Shown>, { principal }: Key) {
  return (query: Query) => call(query, principal);
}

function namedAndNarrowed<Query extends Names | undefined, Shown>(
  call: Narrow<Query, Shown>,
  { principal }: Key,
): Narrow<Query, Shown> {
  return async (query) => {
    refuseNamed(principal, query ?? {});
    return call(query, principal);
  };
}

function namedLane(call: Call<"nonceRuler">, { principal }: Key): Call<"nonceRuler"> {
  return async (signer, query = {}) => {
    refuseNamed(principal, { ...query, signer });
    const ruler = await call(signer, query);
    // If the caller named no chain, the only configured chain was used: check that the key may use that chain.
    refuseOutside(principal, ruler.lane);
    return ruler;
  };
}

/** Calls about one named chain; they count against a rate limit of their own. */
function namedChain(rate: RateRule | null) {
  return <Given extends readonly unknown[], Answer>(
    call: (chainId: number, ...given: Given) => Promise<Answer>,
    { principal, rates }: Key,
  ): typeof call =>
    async (chainId, ...given) => {
      refuseOutside(principal, { chainId });
      if (rate !== null) countOne(principal, rates, rate);
      return call(chainId, ...given);
    };
}

function decided(call: Call<"act">, { principal, api, mayAll }: Key): Call<"act"> {
  return async (received) => {
    const { action, txId } = received;
    const transaction = async () => shown(principal, await api.transaction(txId), `transaction ${txId}`);
    if (FOUR_EYES.has(action)) mayApprove(principal, await transaction());
    else if (!mayAll) {
      mayActOn(principal, OWNERS_ACTIONS.has(action) ? "submit" : null, await transaction());
    }
    return call(received);
  };
}

function decidedBySecond(call: Call<"decideSignature">, { principal, api }: Key): Call<"decideSignature"> {
  return async (received) => {
    const asked = await api.signature(received.signatureId);
    mayApprove(principal, shown(principal, asked, `signature ${received.signatureId}`), "asked for it");
    return call(received);
  };
}

function ownReservation<Given extends readonly unknown[], Done>(
  call: (reservationId: string, ...given: Given) => Promise<Done>,
  { principal, api, mayAll }: Key,
): typeof call {
  return async (id, ...given) => {
    if (!mayAll) {
      mayActOn(principal, "reserve", shown(principal, await api.reservation(id), `reservation ${id}`));
    }
    return call(id, ...given);
  };
}

function unlimited(does: string) {
  return <Given extends readonly unknown[], Done>(call: (...given: Given) => Promise<Done>, { principal }: Key) =>
    async (...given: Given) => {
      refuseLimited(principal, `an API key that is limited to signers or chains ${does}`);
      return call(...given);
    };
}

/** Begins or ends a kill of one signer or of all. The response lists only kills that concern the key's signers. */
function stopping(call: Call<"kill">, { principal, limited }: Key): Call<"kill"> {
  return async (received) => {
    if (principal.chains !== null) throw forbidden("chains", "a kill covers all chains, but this API key does not");
    if (received.signer !== null) refuseNamed(principal, { signer: received.signer });
    else if (limited) throw forbidden("signers", "a kill of all signers needs an API key without limits");
    const answer = await call(received);
    const concerns = ({ signer }: Kill) => signer === null || principal.signers?.has(signer) !== false;
    return { ...answer, kills: answer.kills.filter(concerns) };
  };
}

function countOne(principal: Principal, rates: KeyRates, rule?: RateRule) {
  if (rates.take(principal, 1, rule) === 0) throw tooFast(principal, rule);
}

function refuseOthersUse(principal: Principal, key: string | null | undefined) {
  if (key !== undefined && key !== principal.name)
    refuseLimited(principal, "an API key that is limited to signers or chains cannot read the usage of another key");
}

function seen<T extends OnLane>(principal: Principal, items: readonly T[]) {
  return items.filter(({ lane }) => isWithin(principal, lane));
}

/** Keeps the general policies, and those named policies that the key may see. */
function only(policies: unknown, isVisible: (name: string) => boolean, kind: string) {
  if (policies === undefined) return {};
  const seen = Object.entries(policies as object).filter(([name]) => name === "*" || isVisible(name));
  return { [kind]: Object.fromEntries(seen) };
}

/** `own`: the scope that allows acting on the caller's own objects; null if acting on them needs `operate` too. */
function mayActOn(principal: Principal, own: Scope | null, { owner }: Owned) {
  if (principal.scopes.has("operate")) return;
  if (own === null || !principal.scopes.has(own)) throw forbidden("scope:operate", "this key lacks the scope operate");
  if (isOwn(principal, owner)) return;
  throw forbidden("owner", "the object belongs to another API key or to none: acting on it requires the scope operate");
}

function mayApprove(principal: Principal, { owner }: Owned, what = "created the transaction") {
  if (!principal.scopes.has("approve")) throw forbidden("scope:approve", "this API key lacks the scope approve");
  if (isOwn(principal, owner)) throw forbidden("owner", `this API key ${what}: another key must approve it`);
}

function shown<T extends OnLane>(principal: Principal, found: T, what: string) {
  if (isWithin(principal, found.lane)) return found;
  throw new FencepostError("NOT_FOUND", `there is no ${what}`);
}

interface Names {
  readonly signer?: string;
  readonly chainId?: number;
}

/** Does not validate the signer's text: a text that is not an address is in no list of signers, so it is refused. */
function refuseNamed(principal: Principal, named: Names) {
  const signer = named.signer?.toLowerCase() as Address | undefined;
  refuseOutside(principal, { ...(signer && { signer }), ...(named.chainId && { chainId: named.chainId }) });
}

/** Removes the ids of other transactions from an explanation: they may belong to another API key. */
function byNonceOnly(txId: string, { blockedBy, causes, ...explanation }: Explanation): Explanation {
  // Drop actions on other transactions, because an action's path contains the transaction's id.
  const actions = explanation.actions.filter(
    ({ path }) => !path.startsWith("/api/v1/tx/") || path.startsWith(`/api/v1/tx/${txId}/`),
  );
  const nameless = causes.map(({ data, ...cause }) => {
    const { txId: _, ...figures } = data ?? {};
    return data === undefined ? cause : { ...cause, data: figures };
  });
  return { ...explanation, actions, causes: nameless, ...(blockedBy && { blockedBy: { nonce: blockedBy.nonce } }) };
}
