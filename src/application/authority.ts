/**
 * Permissions of the API, call by call. The scope of a call is checked before (contract/calls). A lane that the caller
 * names and may not use is 403; an id of something that it may not see is 404, as if it did not exist.
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

/** The rule of every call. A call without one does not compile. */
const RULES: { readonly [Name in keyof FencepostApi]: Rule<Name> } = {
  // Every authenticated caller.
  ...{ nodes: everybody, readiness: everybody, newIds: everybody },
  // For everybody: its caller has just received the id.
  firstHash: everybody,

  // Made in the name of the key, within its limits, and counted against its rate.
  ...{ create: made, submitSigned: made, reserveNonce: made },
  ...{ createBatch: madeMany, createNamed: madeMany },
  checkPolicy: asked,

  // Under an id: what it may not see does not exist.
  ...{
    transaction: found("transaction"),
    transactionByRequest: found("transaction"),
    reservation: found("reservation"),
  },
  ...{ explain: explained, signedAs: foundSigned },

  // Lists: entries that the key may not see are left out.
  ...{ transactions: listed({ narrows: true }), completions: listed({ filtered: true }), signers: listed() },
  ...{ signer: listedLanes, leases: listedLeases },
  ...{ policies: ownPolicies, policyUsage: ownUsage },
  // The application leaves it out itself.
  ...{ overview: narrowed, search: narrowed, clusterHistory: narrowed, attention: namedAndNarrowed },
  ...{ notices: namedAndNarrowed, actOnLane: narrowed, acknowledge: narrowed },

  // About a lane or a chain that is named.
  ...{ nonceRuler: namedLane, askChain: namedChain("readsPerSecond"), passSigned: namedChain(null) },

  // About what belongs to the key; about what does not, with `operate`.
  ...{ act: decided, submitReserved: ownReservation, markUsed: ownReservation, releaseNonce: ownReservation },

  // Only a key without limits: no key grants, or changes for others, rights that it does not have.
  ...{
    keys: unlimited("manages no keys"),
    addKey: unlimited("manages no keys"),
    revokeKey: unlimited("manages no keys"),
  },
  applyPolicies: unlimited("changes no policies"),
  ...{ kill: stopping, endKill: stopping },
};

/** Actions of a key on its own transactions, without `operate`. */
const OWNERS_ACTIONS: ReadonlySet<TransactionAction> = new Set(["cancel"]);

/** Actions that need another key than the one that made the transaction. */
const FOUR_EYES: ReadonlySet<TransactionAction> = new Set(["approve", "reject"]);

type Call<Name extends keyof FencepostApi> = FencepostApi[Name];
/** The call as this key has it. */
type Rule<Name extends keyof FencepostApi> = (call: Call<Name>, key: Key) => Call<Name>;

/** The caller, and the unlimited API. */
interface Key {
  readonly principal: Principal;
  readonly api: FencepostApi;
  /** How fast it has been creating and asking. */
  readonly rates: KeyRates;
  /** The key is limited to some signers or chains. */
  readonly limited: boolean;
  /** The key may act on everything, so the owner of a transaction need not be read. */
  readonly mayAll: boolean;
}

interface OnLane {
  readonly lane: Lane;
}

interface Owned extends OnLane {
  readonly owner: string | null;
}

/** The API as this principal has it. */
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

type Make<Request, Made> = (request: Request, owner?: string | null, limits?: CreateLimits) => Promise<Made>;

/** A request that takes a nonce counts against the key's rate on the node that received it, and not again at the owner. */
function made<Request, Made>(make: Make<Request, Made>, { principal, rates }: Key): Make<Request, Made> {
  if (principal.createsPerSecond === null) return (request) => make(request, principal.name, principal);
  return async (request) => {
    countOne(principal, rates);
    return make(request, principal.name, principal);
  };
}

/** Takes the first ones up to the limit, so that a repeat of the others comes after them. */
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

/** A dry run is priced like a create, which calls the chain. Its refusals reveal another key's use. */
function asked(call: Call<"checkPolicy">, { principal, rates }: Key): Call<"checkPolicy"> {
  return async (request, key) => {
    const mayAskForOthers = principal.scopes.has("operate") || principal.scopes.has("admin");
    if (key !== undefined && key !== principal.name && !mayAskForOthers) {
      throw forbidden("scope:operate", "to ask for another API key takes a key with operate");
    }
    refuseOthersUse(principal, key);
    countOne(principal, rates);
    return call(request, key ?? principal.name, principal);
  };
}

/** Finds a row by its id or its request id, within the key's limits. */
function found(kind: string) {
  return <By extends string | RequestQuery, Found extends OnLane>(
    call: (by: By, include?: readonly Include[]) => Promise<Found>,
    { principal, limited }: Key,
  ): typeof call =>
    async (by, include) => {
      if (typeof by !== "string") refuseNamed(principal, by);
      const what = typeof by === "string" ? `${kind} ${by}` : `${kind} with request id ${by.requestId}`;
      // The chain is not asked about a transaction that the key may not see.
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
 * Items that the key may not see leave their page, which may be short, or empty, and has a next one all the same. In the feed
 * the others' numbers keep their places: `next` goes past them.
 */
function listed({ narrows = false, ...mark }: { readonly narrows?: boolean; readonly filtered?: true } = {}) {
  return <Query extends object | undefined, Page extends { readonly items: readonly OnLane[] }>(
    call: (query: Query) => Promise<Page>,
    { principal, limited }: Key,
  ): typeof call => {
    const only = narrows && { ...onlyOne(principal.signers, "signer"), ...onlyOne(principal.chains, "chainId") };
    return async (query) => {
      refuseNamed(principal, query ?? {});
      const page = await call({ ...only, ...query } as Query);
      return limited ? { ...page, items: seen(principal, page.items), ...mark } : page;
    };
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
 * A key that is limited to signers sees the policies of those signers and its own: the limits of others would reveal
 * their business.
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

/** The same as `ownPolicies`, for the use of the policies. */
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

function narrowed<Query, Shown>(call: Narrow<Query, Shown>, { principal }: Key): Narrow<Query, Shown> {
  return (query) => call(query, principal);
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
    // If no chain was named, the configured one was meant: check that one now.
    refuseOutside(principal, ruler.lane);
    return ruler;
  };
}

/** Calls about one chain; they count against a rate of their own. */
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
  return async (order) => {
    const { action, txId } = order;
    const transaction = async () => shown(principal, await api.transaction(txId), `transaction ${txId}`);
    if (FOUR_EYES.has(action)) mayApprove(principal, await transaction());
    else if (!mayAll) {
      mayActOn(principal, OWNERS_ACTIONS.has(action) ? "submit" : null, await transaction());
    }
    return call(order);
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
      refuseLimited(principal, `a key that is limited to signers or chains ${does}`);
      return call(...given);
    };
}

/** Stops a signer on all its chains, or all signers. What is in force elsewhere is others' business. */
function stopping(call: Call<"kill">, { principal, limited }: Key): Call<"kill"> {
  return async (order) => {
    if (principal.chains !== null) throw forbidden("chains", "this is for all chains, and this API key is not");
    if (order.signer !== null) refuseNamed(principal, { signer: order.signer });
    else if (limited) throw forbidden("signers", "this is for all signers, and this API key is not");
    const answer = await call(order);
    const concerns = ({ signer }: Kill) => signer === null || principal.signers?.has(signer) !== false;
    return { ...answer, kills: answer.kills.filter(concerns) };
  };
}

function countOne(principal: Principal, rates: KeyRates, rule?: RateRule) {
  if (rates.take(principal, 1, rule) === 0) throw tooFast(principal, rule);
}

function refuseOthersUse(principal: Principal, key: string | null | undefined) {
  if (key !== undefined && key !== principal.name)
    refuseLimited(principal, "a key that is limited to signers or chains sees no other key's use");
}

function seen<T extends OnLane>(principal: Principal, items: readonly T[]) {
  return items.filter(({ lane }) => isWithin(principal, lane));
}

/** General policies, and the named ones that the key may see. */
function only(policies: unknown, isVisible: (name: string) => boolean, kind: string) {
  if (policies === undefined) return {};
  const seen = Object.entries(policies as object).filter(([name]) => name === "*" || isVisible(name));
  return { [kind]: Object.fromEntries(seen) };
}

/** `own`: the scope that is enough for what is one's own; null: none is. */
function mayActOn(principal: Principal, own: Scope | null, { owner }: Owned) {
  if (principal.scopes.has("operate")) return;
  if (own === null || !principal.scopes.has(own)) throw forbidden("scope:operate", "this takes a key with operate");
  if (isOwn(principal, owner)) return;
  throw forbidden("owner", "this belongs to another API key, or to none: acting on it takes a key with operate");
}

function mayApprove(principal: Principal, { owner }: Owned) {
  if (!principal.scopes.has("approve")) throw forbidden("scope:approve", "this takes a key with approve");
  if (isOwn(principal, owner))
    throw forbidden("owner", "this API key made the transaction: another one has to approve it");
}

function shown<T extends OnLane>(principal: Principal, found: T, what: string) {
  if (isWithin(principal, found.lane)) return found;
  throw new FencepostError("NOT_FOUND", `there is no ${what}`);
}

interface Names {
  readonly signer?: string;
  readonly chainId?: number;
}

/** The signer is not parsed: a text that is no address is in no list of signers. */
function refuseNamed(principal: Principal, named: Names) {
  const signer = named.signer?.toLowerCase() as Address | undefined;
  refuseOutside(principal, { ...(signer && { signer }), ...(named.chainId && { chainId: named.chainId }) });
}

function onlyOne<T>(limit: ReadonlySet<T> | null, name: string): Readonly<Record<string, T>> {
  const [one] = limit?.size === 1 ? limit : [];
  return one === undefined ? {} : { [name]: one };
}

/** The transaction that it waits for may be another key's. */
function byNonceOnly(txId: string, { blockedBy, causes, ...explanation }: Explanation): Explanation {
  // An action on another transaction names it.
  const actions = explanation.actions.filter(
    ({ path }) => !path.startsWith("/api/v1/tx/") || path.startsWith(`/api/v1/tx/${txId}/`),
  );
  const nameless = causes.map(({ data, ...cause }) => {
    const { txId: _, ...figures } = data ?? {};
    return data === undefined ? cause : { ...cause, data: figures };
  });
  return { ...explanation, actions, causes: nameless, ...(blockedBy && { blockedBy: { nonce: blockedBy.nonce } }) };
}
