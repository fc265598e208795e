/**
 * What a key may see and do of the API: its own limits and what belongs to it. The scopes of routes are asked for before
 * (contract/scopes.ts). A lane that the caller names and may not use is 403; an id of something that it may not see is 404,
 * as if it did not exist.
 */
import { defined } from "../domain/defined.ts";
import { FencepostError } from "../domain/errors.ts";
import type { Kill } from "../domain/kills.ts";
import type { Address, Lane } from "../domain/lane.ts";
import {
  ANYBODY,
  forbidden,
  isLimited,
  isOwn,
  isWithin,
  type Principal,
  refuseLimited,
  refuseOutside,
  type Scope,
} from "../domain/principal.ts";
import type { Explanation } from "../domain/troubles/situation.ts";
import type { FencepostApi, KillAnswer, KillOrder, TransactionAction } from "./api.ts";
import { type KeyRates, type RateRule, tooFast } from "./key-rates.ts";

/** What its own key may do to a transaction, without `operate`. */
const OWNERS_ACTIONS: ReadonlySet<TransactionAction> = new Set(["cancel"]);

/** What takes another key than the one that made the transaction. */
const FOUR_EYES: ReadonlySet<TransactionAction> = new Set(["approve", "reject"]);

interface Owned {
  readonly lane: Lane;
  readonly owner: string | null;
}

/** The API as this principal has it. `rates`: how fast it has been creating and asking. */
export function limitedTo(principal: Principal, api: FencepostApi, rates: KeyRates): FencepostApi {
  if (principal === ANYBODY) return api;
  return {
    ...making(principal, api, rates),
    actOnLane: (order) => api.actOnLane(order, principal),
    acknowledge: (order) => api.acknowledge(order, principal),
    ...reads(principal, api, rates),
    ...sights(principal, api),
    ...ownersActions(principal, api),
    ...managing(principal, api),
    ...stopping(principal, api),
    ...policyReads(principal, api, rates),
    nodes: () => api.nodes(),
    readiness: (chainId) => api.readiness(chainId),
  };
}

/** What takes a nonce is counted where its caller is heard: forwarded to the lane's owner it is not counted again. */
function making(principal: Principal, api: FencepostApi, rates: KeyRates) {
  const { name } = principal;
  const free = {
    create: (request) => api.create(request, name, principal),
    createBatch: (requests) => api.createBatch(requests, name, principal),
    newIds: (count) => api.newIds(count),
    createNamed: (creates) => api.createNamed(creates, name, principal),
    submitSigned: (request) => api.submitSigned(request, name, principal),
    reserveNonce: (request) => api.reserveNonce(request, name, principal),
  } satisfies Partial<FencepostApi>;
  if (principal.createsPerSecond === null) return free;
  const counted = async <T>(work: () => Promise<T>): Promise<T> => {
    countOne(principal, rates);
    return work();
  };
  /** The first of them are taken, as many as may be, so that a repeat of the others stands behind them. */
  const firstOf = async <T>(
    items: readonly T[],
    make: (items: readonly T[]) => ReturnType<typeof free.createBatch>,
  ) => {
    const taken = rates.take(principal, items.length);
    const made = taken === 0 ? [] : await make(items.slice(0, taken));
    return [...made, ...items.slice(taken).map(() => tooFast(principal))];
  };
  return {
    create: (request) => counted(() => free.create(request)),
    newIds: free.newIds,
    createBatch: (requests) => firstOf(requests, free.createBatch),
    createNamed: (creates) => firstOf(creates, free.createNamed),
    submitSigned: (request) => counted(() => free.submitSigned(request)),
    reserveNonce: (request) => counted(() => free.reserveNonce(request)),
  } satisfies Partial<FencepostApi>;
}

function countOne(principal: Principal, rates: KeyRates, rule?: RateRule): void {
  if (rates.take(principal, 1, rule) === 0) throw tooFast(principal, rule);
}

function reads(principal: Principal, api: FencepostApi, rates: KeyRates) {
  const sees = ({ lane }: { readonly lane: Lane }): boolean => isWithin(principal, lane);
  const limited = isLimited(principal);
  const onlySigner = onlyOne(principal.signers);
  const onlyChain = onlyOne(principal.chains);
  return {
    transaction: async (txId, include) => {
      // No chain is asked about what it may not see.
      if (limited && include?.includes("logs") === true)
        shown(principal, await api.transaction(txId), `transaction ${txId}`);
      return shown(principal, await api.transaction(txId, include), `transaction ${txId}`);
    },
    transactionByRequest: async (query, include) => {
      refuseNamed(principal, query);
      const what = `transaction with request id ${query.requestId}`;
      if (limited && include?.includes("logs") === true) shown(principal, await api.transactionByRequest(query), what);
      return shown(principal, await api.transactionByRequest(query, include), what);
    },
    /** What it may not see leaves its page, which may be short, or empty, and has a next one all the same. */
    transactions: async (query) => {
      refuseNamed(principal, query);
      const page = await api.transactions({ ...onlySigner("signer"), ...onlyChain("chainId"), ...query });
      return limited ? { ...page, items: page.items.filter(sees) } : page;
    },
    explain: async (txId) => {
      if (!limited) return api.explain(txId);
      shown(principal, await api.transaction(txId), `transaction ${txId}`);
      return byNonceOnly(txId, await api.explain(txId, { blockerByNonce: true }));
    },
    /** Others' numbers keep their places: `next` goes past them. */
    completions: async (query) => {
      const page = await api.completions(query);
      return limited ? { ...page, items: page.items.filter(sees), filtered: true } : page;
    },
    signers: async (query = {}) => {
      refuseNamed(principal, defined({ chainId: query.chainId }));
      const page = await api.signers(query);
      return limited ? { ...page, items: page.items.filter(sees) } : page;
    },
    signer: async (signer, options) => {
      refuseNamed(principal, { signer });
      return (await api.signer(signer, options)).filter(sees);
    },
    /** By an id that it was just given. */
    firstHash: (txId, within) => api.firstHash(txId, within),
    signedAs: async (chainId, txHash) => {
      const found = await api.signedAs(chainId, txHash);
      return found !== null && sees(found) ? found : null;
    },
    askChain: async (chainId, method, params) => {
      refuseOutside(principal, { chainId });
      countOne(principal, rates, "readsPerSecond");
      return api.askChain(chainId, method, params);
    },
    passSigned: async (chainId, rawTransaction) => {
      refuseOutside(principal, { chainId });
      return api.passSigned(chainId, rawTransaction);
    },
    leases: async () => (await api.leases()).filter(sees),
    reservation: async (id) => shown(principal, await api.reservation(id), `reservation ${id}`),
  } satisfies Partial<FencepostApi>;
}

/** Of everything at once: what concerns its signers and chains, and what concerns them all. */
function sights(principal: Principal, api: FencepostApi) {
  return {
    attention: async (query = {}) => {
      refuseNamed(principal, query);
      return api.attention(query, principal);
    },
    overview: (query) => api.overview(query, principal),
    search: (query) => api.search(query, principal),
    nonceRuler: async (signer, query = {}) => {
      refuseNamed(principal, { ...query, signer });
      const ruler = await api.nonceRuler(signer, query);
      // Without a chain that was named, the one that is configured was meant.
      refuseOutside(principal, ruler.lane);
      return ruler;
    },
    notices: async (query = {}) => {
      refuseNamed(principal, query);
      return api.notices(query, principal);
    },
    clusterHistory: (query) => api.clusterHistory(query, principal),
  } satisfies Partial<FencepostApi>;
}

function ownersActions(principal: Principal, api: FencepostApi) {
  /** Nothing more is read for a key that may do this to everything. */
  const mayAll = principal.scopes.has("operate") && !isLimited(principal);
  const ofReservation = async (reservationId: string): Promise<void> => {
    if (mayAll) return;
    const what = `reservation ${reservationId}`;
    mayActOn(principal, "reserve", shown(principal, await api.reservation(reservationId), what));
  };
  return {
    act: async (order) => {
      if (FOUR_EYES.has(order.action)) {
        mayApprove(principal, shown(principal, await api.transaction(order.txId), `transaction ${order.txId}`));
      } else if (!mayAll) {
        const found = shown(principal, await api.transaction(order.txId), `transaction ${order.txId}`);
        mayActOn(principal, OWNERS_ACTIONS.has(order.action) ? "submit" : null, found);
      }
      return api.act(order);
    },
    submitReserved: async (id, request) => {
      await ofReservation(id);
      return api.submitReserved(id, request);
    },
    markUsed: async (id, request) => {
      await ofReservation(id);
      return api.markUsed(id, request);
    },
    releaseNonce: async (id) => {
      await ofReservation(id);
      return api.releaseNonce(id);
    },
  } satisfies Partial<FencepostApi>;
}

/** A key cannot give what it does not have: one with limits makes none. */
function managing(principal: Principal, api: FencepostApi) {
  const refuse = (): void => refuseLimited(principal, "a key that is limited to signers or chains manages no keys");
  return {
    keys: async () => {
      refuse();
      return api.keys();
    },
    addKey: async (request, actor) => {
      refuse();
      return api.addKey(request, actor);
    },
    revokeKey: async (name, secretId, actor) => {
      refuse();
      return api.revokeKey(name, secretId, actor);
    },
  } satisfies Partial<FencepostApi>;
}

/** An order stops a signer on all its chains, or all signers. What is in force elsewhere is others' business. */
function stopping(principal: Principal, api: FencepostApi) {
  const ordering = async (order: KillOrder, carryOut: (order: KillOrder) => Promise<KillAnswer>) => {
    if (principal.chains !== null) throw forbidden("chains", "this is for all chains, and this API key is not");
    if (order.signer !== null) refuseNamed(principal, { signer: order.signer });
    else if (isLimited(principal)) throw forbidden("signers", "this is for all signers, and this API key is not");
    const answer = await carryOut(order);
    const concerns = ({ signer }: Kill) => signer === null || principal.signers?.has(signer) !== false;
    return { ...answer, kills: answer.kills.filter(concerns) };
  };
  return {
    kill: (order) => ordering(order, (sound) => api.kill(sound)),
    endKill: (order) => ordering(order, (sound) => api.endKill(sound)),
  } satisfies Partial<FencepostApi>;
}

/** What others may do and have used is for those who act on theirs, or see everything. */
function policyReads(principal: Principal, api: FencepostApi, rates: KeyRates) {
  const limited = isLimited(principal);
  const isMine = (key: string | null): boolean => key === principal.name;
  /** A dry run tells it too: by what is refused. */
  const refuseOthers = (key: string | null | undefined): void => {
    if (key !== undefined && !isMine(key))
      refuseLimited(principal, "a key that is limited to signers or chains sees no other key's use");
  };
  return {
    checkPolicy: async (request, key) => {
      const mayAskForOthers = principal.scopes.has("operate") || principal.scopes.has("admin");
      if (key !== undefined && !isMine(key) && !mayAskForOthers) {
        throw forbidden("scope:operate", "to ask for another API key takes a key with operate");
      }
      refuseOthers(key);
      // It is priced as a create is, which asks the chain.
      countOne(principal, rates);
      return api.checkPolicy(request, key ?? principal.name, principal);
    },
    policies: async () => {
      const inForce = await api.policies();
      const { policies } = inForce;
      if (!limited || policies === null) return inForce;
      const { signers, keys, ...rest } = policies;
      const isVisible = (signer: string): boolean => principal.signers?.has(signer.toLowerCase() as Address) !== false;
      const narrowed = { ...only(signers, isVisible, "signers"), ...only(keys, isMine, "keys") };
      return { ...inForce, policies: { ...rest, ...narrowed } };
    },
    applyPolicies: async (request, actor) => {
      refuseLimited(principal, "a key that is limited to signers or chains changes no policies");
      return api.applyPolicies(request, actor);
    },
    policyUsage: async (query = {}) => {
      refuseNamed(principal, query);
      refuseOthers(query.key);
      const { at, signers, keys } = await api.policyUsage(query);
      if (!limited) return { at, signers, keys };
      const mine = keys.filter(({ key, chainId }) => isMine(key) && principal.chains?.has(chainId) !== false);
      return { at, signers: signers.filter(({ lane }) => isWithin(principal, lane)), keys: mine };
    },
  } satisfies Partial<FencepostApi>;
}

/** Of the policies by name: those for everybody, and those that it may see. */
function only(policies: unknown, isVisible: (name: string) => boolean, kind: string) {
  if (policies === undefined) return {};
  const seen = Object.entries(policies as object).filter(([name]) => name === "*" || isVisible(name));
  return { [kind]: Object.fromEntries(seen) };
}

/** `own`: the scope that is enough for what is one's own; null: none is. */
function mayActOn(principal: Principal, own: Scope | null, { owner }: Owned): void {
  if (principal.scopes.has("operate")) return;
  if (own === null || !principal.scopes.has(own)) throw forbidden("scope:operate", "this takes a key with operate");
  if (isOwn(principal, owner)) return;
  throw forbidden("owner", "this belongs to another API key, or to none: acting on it takes a key with operate");
}

function mayApprove(principal: Principal, { owner }: Owned): void {
  if (!principal.scopes.has("approve")) throw forbidden("scope:approve", "this takes a key with approve");
  if (isOwn(principal, owner))
    throw forbidden("owner", "this API key made the transaction: another one has to approve it");
}

function shown<T extends { readonly lane: Lane }>(principal: Principal, found: T, what: string): T {
  if (isWithin(principal, found.lane)) return found;
  throw new FencepostError("NOT_FOUND", `there is no ${what}`);
}

/** As it was written: what is no address is in no list of signers. */
function refuseNamed(principal: Principal, named: { readonly signer?: string; readonly chainId?: number }): void {
  const signer = named.signer?.toLowerCase() as Address | undefined;
  refuseOutside(principal, { ...(signer && { signer }), ...(named.chainId && { chainId: named.chainId }) });
}

function onlyOne<T>(limit: ReadonlySet<T> | null): (name: string) => Readonly<Record<string, T>> {
  const [only] = limit?.size === 1 ? limit : [];
  return (name) => (only === undefined ? {} : { [name]: only });
}

/** The transaction that it waits for may be another key's. */
function byNonceOnly(txId: string, { blockedBy, causes, ...explanation }: Explanation): Explanation {
  // An order about another transaction names it.
  const actions = explanation.actions.filter(
    ({ path }) => !path.startsWith("/api/v1/tx/") || path.startsWith(`/api/v1/tx/${txId}/`),
  );
  const nameless = causes.map(({ data, ...cause }) => {
    const { txId: _, ...figures } = data ?? {};
    return data === undefined ? cause : { ...cause, data: figures };
  });
  return { ...explanation, actions, causes: nameless, ...(blockedBy && { blockedBy: { nonce: blockedBy.nonce } }) };
}
