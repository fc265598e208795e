/**
 * The policy document in force: reads it, replaces it, tests it on a create, and shows how much of its limits is used.
 * Policies are applied when nonces are allocated.
 */
import { FencepostError, invalid } from "../../domain/errors.ts";
import { type Limits, refuseOutside } from "../../domain/keys/principal.ts";
import { foreseenMessage } from "../../domain/ledger/index.ts";
import type { PolicyInForce } from "../../domain/policy/in-force.ts";
import {
  type AllowedMessage,
  countedUntil,
  type MessageUse,
  type Signed,
  windowLimits,
} from "../../domain/policy/message-rules.ts";
import { parsePolicies } from "../../domain/policy/parse.ts";
import { type Forbidden, type Policies, type Policy, policyFor } from "../../domain/policy/policy.ts";
import { type Amounts, NOTHING, type Use, within } from "../../domain/policy/use.ts";
import type { PolicyChange } from "../../ports/policy-store.ts";
import type { CreateRequest, PolicyCheckRequest } from "../api.ts";
import type { CallPorts } from "../chain/work-ports.ts";
import { foreseenBy } from "../lane/limits.ts";
import { parseReason } from "../requests/action.ts";
import { asObject, refuseUnknownKeys } from "../requests/fields.ts";
import { parseSignMessage } from "../requests/message.ts";
import { type NormalisePorts, normalise, parseSigner } from "../requests/normalise.ts";
import { prepare } from "../stages/1-create/prepare.ts";

export type PolicyPorts = CallPorts & Required<Pick<CallPorts, "limits">> & { readonly intents: NormalisePorts };

export type PolicyCalls = ReturnType<typeof createPolicyCalls>;

export function createPolicyCalls(ports: PolicyPorts) {
  return {
    /**
     * Dry run: what the policies would decide about this create or message now, and how much it would count. Changes
     * nothing.
     */
    checkPolicy: (request: PolicyCheckRequest, key?: string | null, limits?: Limits): Promise<PolicyAnswer> => {
      const { message, typedData } = request;
      const dryRun = message === undefined && typedData === undefined ? check : checkMessage;
      return dryRun(ports, request, key ?? null, limits);
    },
    /** The policy document in force on every node. */
    policies: async () => viewOf(await ports.store.readPolicy()),
    /**
     * `{ policies, reason, expectedVersion? }`: replaces the policy document on every node. Once this call returns, the
     * new document applies to everything that gets a nonce or a further payload. CONFLICT if a version other than the
     * expected one is in force.
     */
    applyPolicies: (request: unknown, actor: string) => applied(ports, request, actor),
    /** How much of the limits is used in the current hour and day: by all keys and signers, or by the named one. */
    policyUsage: (query: UsageQuery = {}) => usage(ports, query),
  };
}

/** View of the policy document; `hash` and `policies` are null if nothing is limited. */
function viewOf({ version, changedAt, changedBy, reason, policies }: PolicyInForce) {
  const document = { hash: policies?.hash ?? null, policies: policies?.document ?? null };
  return { version, ...document, changedAt, changedBy, reason };
}

async function applied(ports: PolicyPorts, request: unknown, actor: string) {
  const { policies: document, reason, expectedVersion } = parseApply(request);
  const parsed = parsePolicies(document, ports.intents.codec);
  if ("mistakes" in parsed) throw invalid("policies", parsed.mistakes.join("; "));
  const changed = await change(ports, { policies: parsed.policies, actor, reason, expectedVersion });
  if (changed.outcome !== "conflict") return viewOf(changed.inForce);
  const { version } = changed.inForce;
  throw new FencepostError("CONFLICT", `version ${version} of the policies is in force, not ${expectedVersion}`);
}

function parseApply(request: unknown) {
  const body = asObject(request, "");
  refuseUnknownKeys(body, ["policies", "reason", "expectedVersion"], "");
  const { policies, reason, expectedVersion = null } = body;
  const isVersion =
    typeof expectedVersion === "number" && Number.isSafeInteger(expectedVersion) && expectedVersion >= 0;
  if (expectedVersion !== null && !isVersion) throw invalid("expectedVersion", "must be a version number");
  return { policies, reason: parseReason(reason), expectedVersion: isVersion ? expectedVersion : null };
}

type ChangePorts = Pick<CallPorts, "telemetry" | "store" | "nodeId">;

/**
 * Changes the policy document: stores who changed it and why, and the node that received the request raises an alert.
 */
async function change({ store, telemetry, nodeId }: ChangePorts, wanted: Omit<PolicyChange, "nodeId">) {
  const changed = await store.changePolicy({ ...wanted, nodeId });
  if (changed.outcome === "changed") {
    const { version } = changed.inForce;
    const message = `version ${version} of the policies is in force, by ${wanted.actor}: ${wanted.reason}`;
    telemetry.emit({ type: "alert", severity: "WARNING", code: "POLICIES_CHANGED", message });
  }
  return changed;
}

/**
 * Writes this node's own policies as the first document, if the database has none. If several nodes start, the first
 * one does.
 */
export async function seedPolicies(ports: ChangePorts & { readonly policies?: Policies | null }): Promise<void> {
  const { store, nodeId, policies: own = null } = ports;
  const { version } = await store.readPolicy();
  if (version > 0 || own === null) return;
  const reason = "the database had no policies; this node brought its own";
  await change(ports, { policies: own, actor: `node:${nodeId}`, reason, expectedVersion: 0 });
}

export interface PolicyAnswer extends Amounts, Partial<Forbidden> {
  readonly allowed: boolean;
  readonly awaitsApproval?: boolean;
  readonly counts?: MessageCount;
}

/** Amount that a message adds to the rule that allows it, beside the sums and limits of the rule's hour and day. */
export interface MessageCount {
  readonly rule: string;
  readonly amount: bigint;
  readonly since: Date;
  readonly hour: CountedWindow;
  readonly day: CountedWindow;
}

export interface CountedWindow extends Signed {
  readonly maxAmount: bigint | null;
  readonly maxSignatures: number | null;
}

/** Judges a message as the commit that keeps it would. It moves no wei, and its rule has limits of its own. */
async function checkMessage(
  { limits, intents }: PolicyPorts,
  request: PolicyCheckRequest,
  owner: string | null,
  caller?: Limits,
): Promise<PolicyAnswer> {
  const { lane, message } = parseSignMessage(intents, request);
  if (caller !== undefined) refuseOutside(caller, lane);
  const { at, used } = await limits.messageUse(lane);
  const foreseen = foreseenMessage(limits.policies, { lane, at, owner, message }, used);
  const { forbidden, awaited, allowed, use } = foreseen;
  const counts = allowed === null ? {} : { counts: countOf(allowed, countedUntil(use, at)) };
  const about = { ...NOTHING, ...counts };
  if (forbidden !== null) return { allowed: false, ...about, ...forbidden };
  return { allowed: true, ...about, ...(awaited && { awaitsApproval: true, ...awaited }) };
}

function countOf({ rule, amount }: AllowedMessage, { hourMs, hour, day }: MessageUse): MessageCount {
  const { amounts, signatures } = windowLimits(rule);
  const window = (sum: Signed, each: "perHour" | "perDay") => ({
    ...sum,
    maxAmount: amounts[each],
    maxSignatures: signatures[each],
  });
  const windows = { hour: window(hour, "perHour"), day: window(day, "perDay") };
  return { rule: rule.name, amount, since: new Date(hourMs), ...windows };
}

/**
 * Prepares the request and computes its price as for a create. Then checks it against the policies and the amounts used
 * so far.
 */
const check = async (
  { limits, intents, chains }: PolicyPorts,
  request: CreateRequest,
  owner: string | null,
  caller?: Limits,
): Promise<PolicyAnswer> => {
  const intent = normalise(intents, request, { owner, ...(caller && { limits: caller }) });
  const { lane, payload } = intent;
  const context = chains.get(lane.chainId);
  if (context === undefined) {
    throw new FencepostError("UNKNOWN_CHAIN", `chain ${lane.chainId} is not served by this node: use another node`);
  }
  const { gasCost } = await prepare(context, intent, { behindPending: payload.gas !== undefined, laneKnown: true });
  const { to, data, value } = payload;
  const costs = { value, cost: value + gasCost };
  const use = await limits.use(lane, owner === null ? {} : { owner });
  const verdict = foreseenBy(limits, use, { to, data, value, gasCost, about: "payload" });
  if ("forbidden" in verdict) return { allowed: false, ...costs, ...verdict.forbidden };
  if (!("awaited" in verdict)) return { allowed: true, ...costs };
  const { rule, detail } = verdict.awaited;
  return { allowed: true, ...costs, awaitsApproval: true, rule, detail };
};

export interface UsageQuery {
  readonly key?: string;
  readonly signer?: string;
}

/**
 * Amount used of each limit, and the limit itself; a limit of null means not limited. `since`: the beginning of the
 * hour.
 */
async function usage({ limits, store, intents }: PolicyPorts, { key, signer }: UsageQuery) {
  const wanted = signer === undefined ? null : parseSigner(intents.codec, signer, "signer");
  const [{ at, signers, keys }] = await Promise.all([store.allPolicyUse(), store.readPolicy()]);
  const of = (policies: ReadonlyMap<string, Policy> | undefined, name: string, use: Use) => {
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
      .map(({ lane, use }) => ({ lane, ...of(limits.policies?.signers, lane.signer, use) })),
    keys: keys
      .filter(({ owner }) => isAsked || owner === key)
      .map(({ chainId, owner, use }) => ({ chainId, key: owner, ...of(limits.policies?.keys, owner, use) })),
  };
}
