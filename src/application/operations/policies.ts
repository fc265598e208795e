/** What policies would say, what is in force, and what is used. Nothing here decides: that is done where nonces are given. */
import { FencepostError, orDatabaseSilent } from "../../domain/errors.ts";
import { foreseen } from "../../domain/ledger/index.ts";
import { type Policies, type Policy, policyFor } from "../../domain/policy/policy.ts";
import { type Use, within } from "../../domain/policy/use.ts";
import type { Limits } from "../../domain/principal.ts";
import type { LeaseStore } from "../../ports/lease-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { QueryStore } from "../../ports/query-store.ts";
import type { FencepostApi, PolicyApi, PolicyUsageView, UsedView } from "../api.ts";
import type { ChainContext } from "../chain/chain-context.ts";
import type { LimitPorts } from "../lane/limits.ts";
import { type NormalisePorts, normalise, parseSigner } from "../requests/normalise.ts";
import { prepare } from "../stages/1-create/prepare.ts";

export interface PolicyPorts extends LimitPorts {
  readonly store: Pick<QueryStore, "policyUsage">;
  readonly intents: NormalisePorts;
  readonly chains: ReadonlyMap<number, ChainContext>;
}

export function createPolicyReads(ports: PolicyPorts): Pick<FencepostApi, PolicyApi> {
  const reading = <T>(work: Promise<T>): Promise<T> => orDatabaseSilent(work, null);
  return {
    checkPolicy: (request, key, limits) => reading(check(ports, request, key ?? null, limits)),
    policies: async () => ({
      hash: ports.limits?.policies.hash ?? null,
      policies: ports.limits?.policies.document ?? null,
    }),
    policyUsage: (query = {}) => reading(usage(ports, query)),
  };
}

/** Which policies are in force is part of what happened: a change of them is kept, and said aloud. */
export async function tellPolicies(
  {
    store,
    telemetry,
    policies = null,
  }: Pick<Ports, "telemetry"> & {
    readonly store: Pick<LeaseStore, "notePolicies">;
    readonly policies?: Policies | null;
  },
  nodeId: string,
): Promise<void> {
  if (!(await store.notePolicies(nodeId, policies))) return;
  const message = `${nodeId} works by other policies than were in force before: ${policies?.hash ?? "none"}`;
  telemetry.emit({ type: "alert", severity: "WARNING", code: "POLICIES_CHANGED", message });
}

/** Prepared as a create is, so that what it costs is what would be counted; then judged by what is used now. */
const check = async (
  { limits = null, intents, chains }: PolicyPorts,
  request: Parameters<FencepostApi["checkPolicy"]>[0],
  owner: string | null,
  caller?: Limits,
) => {
  const intent = normalise(intents, request, { owner, ...(caller && { limits: caller }) });
  const { lane, payload } = intent;
  const context = chains.get(lane.chainId);
  if (context === undefined) {
    throw new FencepostError("UNKNOWN_CHAIN", `chain ${lane.chainId} is served by other nodes: ask one of those`);
  }
  const { gasCost } = await prepare(context, intent, { behindPending: payload.gas !== undefined, laneKnown: true });
  const { to, data, value } = payload;
  const costs = { value, cost: value + gasCost };
  if (limits === null) return { allowed: true, ...costs };
  const use = await limits.use(lane, owner === null ? {} : { owner });
  const verdict = foreseen(limits.policies, use, { to, data, value, gasCost, about: "payload" });
  if ("forbidden" in verdict) return { allowed: false, ...costs, ...verdict.forbidden };
  if (!("awaited" in verdict)) return { allowed: true, ...costs };
  const { rule, detail } = verdict.awaited;
  return { allowed: true, ...costs, awaitsApproval: true, rule, detail };
};

async function usage(
  { limits, store, intents }: PolicyPorts,
  { key, signer }: NonNullable<Parameters<FencepostApi["policyUsage"]>[0]>,
): Promise<PolicyUsageView> {
  const wanted = signer === undefined ? null : parseSigner(intents.codec, signer, "signer");
  const { at, signers, keys } = await store.policyUsage();
  const of = (policies: ReadonlyMap<string, Policy> | undefined, name: string, use: Use): UsedView => {
    const policy = policies === undefined ? null : policyFor(policies, name);
    const { hour, day, hourMs } = within(use, at);
    const most = (window: "perHour" | "perDay") => ({
      maxValue: policy?.maxValue[window] ?? null,
      maxCost: policy?.maxCost[window] ?? null,
    });
    return { since: new Date(hourMs), hour: { ...hour, ...most("perHour") }, day: { ...day, ...most("perDay") } };
  };
  const isAsked = key === undefined && wanted === null;
  return {
    at,
    signers: signers
      .filter(({ lane }) => isAsked || lane.signer === wanted)
      .map(({ lane, use }) => ({ lane, ...of(limits?.policies.signers, lane.signer, use) })),
    keys: keys
      .filter(({ owner }) => isAsked || owner === key)
      .map(({ chainId, owner, use }) => ({ chainId, key: owner, ...of(limits?.policies.keys, owner, use) })),
  };
}
