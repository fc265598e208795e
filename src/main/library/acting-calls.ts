import { noticeView } from "../../adapters/http/sight-views.ts";
import * as views from "../../adapters/http/views.ts";
import type { CallOptions, OrderOptions } from "../../client/deadline.ts";
import type { FencepostFace, KillWish } from "../../client/face.ts";
import type { LaneAction, TransactionAction } from "../../contract/actions.ts";
import { NewKey } from "../../contract/keys.ts";
import { Notice } from "../../contract/notice.ts";
import { PoliciesInForce, PolicyVerdict } from "../../contract/policies.ts";
import { SignerLanes } from "../../contract/signers.ts";
import { Transaction } from "../../contract/transactions.ts";
import { ACTOR, type Asking, type Inside } from "./asking.ts";
import { shaped } from "./contract-shape.ts";

/** What an operator decides. The embedding process is one. */
export function actingCalls(inside: Inside, asking: Asking) {
  const { api, checksum, clock } = inside;
  const act = (action: TransactionAction) => (txId: string, request: object, options?: OrderOptions) =>
    asking.ask(options, async () => {
      const view = await api.act({ action, txId, request, actor: ACTOR, ...keyOf(options) });
      return shaped(Transaction, views.transactionView(view, checksum));
    });
  const onLane = (action: LaneAction) => (signer: string, request: object, options?: OrderOptions) =>
    asking.ask(options, async () => {
      const lanes = await api.actOnLane({ action, signer, request, actor: ACTOR, ...keyOf(options) });
      return shaped(SignerLanes, views.signersView(lanes, checksum, clock.now())).items;
    });
  return {
    resubmit: act("resubmit"),
    reprice: act("reprice"),
    cancel: act("cancel"),
    replace: act("replace"),
    resolve: act("resolve"),
    approve: act("approve"),
    reject: act("reject"),
    suspendTransaction: act("suspend"),
    resumeTransaction: act("resume"),
    suspend: onLane("suspend"),
    resume: onLane("resume"),
    realign: onLane("realign"),
    ...stoppingCalls(inside, asking),
    acknowledge: (noticeId, request, options) =>
      asking.ask(options, async () => {
        const notice = await api.acknowledge({ noticeId, request, actor: ACTOR, ...keyOf(options) });
        return shaped(Notice, noticeView(notice, checksum));
      }),
    ...keyCalls(inside, asking),
    checkPolicy: ({ key, ...request }, options) =>
      asking.ask(options, async () =>
        shaped(PolicyVerdict, views.policyVerdictView(await api.checkPolicy(request, key ?? null))),
      ),
    applyPolicies: (request, options) =>
      asking.ask(options, async () =>
        shaped(PoliciesInForce, views.policiesView(await api.applyPolicies(request, ACTOR))),
      ),
  } satisfies Partial<FencepostFace>;
}

function keyOf(options: OrderOptions | undefined): OrderOptions {
  return options?.idempotencyKey === undefined ? {} : { idempotencyKey: options.idempotencyKey };
}

function stoppingCalls({ api, checksum }: Inside, asking: Asking) {
  const killing = (name: "kill" | "endKill") => {
    return ({ signer = null, ...request }: KillWish | { signer: null } = { signer: null }, options?: CallOptions) =>
      asking.ask(options, async () => views.killView(await api[name]({ signer, request, actor: ACTOR }), checksum));
  };
  return { kill: killing("kill"), endKill: killing("endKill") } satisfies Partial<FencepostFace>;
}

function keyCalls({ api, checksum }: Inside, asking: Asking) {
  return {
    addKey: (key, options) =>
      asking.ask(options, async () => {
        const { secret, secretId, ...terms } = await api.addKey(key, ACTOR);
        return shaped(NewKey, { ...views.keyTermsView(terms, checksum), secret, secretId });
      }),
    revokeKey: (name, options) =>
      asking.ask(options, async () => {
        const secretId = options?.secretId ?? null;
        await api.revokeKey(name, secretId, ACTOR);
        return { name, secretId };
      }),
  } satisfies Partial<FencepostFace>;
}
