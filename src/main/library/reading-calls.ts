import { queryReader } from "../../adapters/http/query.ts";
import * as views from "../../adapters/http/views.ts";
import type { CallOptions } from "../../client/deadline.ts";
import type { FencepostFace } from "../../client/face.ts";
import { followCompletions } from "../../client/follow.ts";
import { ClusterNodes, LaneLeases } from "../../contract/cluster.ts";
import { CompletionsPage, CompletionsQuery } from "../../contract/completions.ts";
import { Keys } from "../../contract/keys.ts";
import { NonceReservation } from "../../contract/nonces.ts";
import { PoliciesInForce, PolicyUsageQuery } from "../../contract/policies.ts";
import { SignerLanes, SignersPage, SignersQuery } from "../../contract/signers.ts";
import { Explanation, Transaction, TransactionListQuery, TransactionPage } from "../../contract/transactions.ts";
import { type Asking, asParameters, type Inside } from "./asking.ts";
import { shaped } from "./contract-shape.ts";
import { sightCalls } from "./sight-calls.ts";

const LARGEST_PAGE = 500;

const readList = queryReader(TransactionListQuery);
const readFeed = queryReader(CompletionsQuery);
const readSigners = queryReader(SignersQuery);
const readUsage = queryReader(PolicyUsageQuery);

export function readingCalls(inside: Inside, asking: Asking) {
  const cluster = { ...clusterReads(inside, asking), ...sightCalls(inside, asking) };
  return { ...transactionReads(inside, asking), ...feedReads(inside, asking), ...cluster };
}

function transactionReads({ api, checksum }: Inside, asking: Asking) {
  return {
    get: (txId, options) =>
      asking.read(options, async () => {
        const view = await api.transaction(txId, options?.include ?? []);
        return shaped(Transaction, views.transactionView(view, checksum));
      }),
    getByRequest: (request, options) =>
      asking.read(options, async () => {
        const view = await api.transactionByRequest(request, options?.include ?? []);
        return shaped(Transaction, views.transactionView(view, checksum));
      }),
    explain: (txId, options) =>
      asking.read(options, async () => shaped(Explanation, views.explanationView(await api.explain(txId)))),
    list: (query = {}, options) =>
      asking.read(options, async () => {
        const { items, next } = await api.transactions(readList(asParameters(query)));
        return shaped(TransactionPage, { items: items.map((view) => views.transactionView(view, checksum)), next });
      }),
    reservation: (reservationId, options) =>
      asking.read(options, async () =>
        shaped(NonceReservation, views.reservationView(await api.reservation(reservationId), checksum)),
      ),
  } satisfies Partial<FencepostFace>;
}

function feedReads({ api, checksum, closing }: Inside, asking: Asking) {
  const completionsPage: FencepostFace["completionsPage"] = (query = {}, options) =>
    asking.read(options, async () => {
      const { after = 0, wait = 0, ...rest } = readFeed(asParameters(query));
      const { signal } = asking.untilClosed(options ?? {});
      const page = await api.completions({ after, ...rest, waitMs: Math.round(wait * 1000), signal });
      return shaped(CompletionsPage, views.completionsView(page, checksum));
    });
  async function* completions(...[query = {}, options = {}]: Parameters<FencepostFace["completions"]>) {
    try {
      yield* followCompletions(completionsPage, query, asking.untilClosed(options));
    } catch (error) {
      // The feed ends with the node that it was read from.
      if (!closing.aborted) throw error;
    }
  }
  return { completionsPage, completions } satisfies Partial<FencepostFace>;
}

function clusterReads({ api, checksum, clock }: Inside, asking: Asking) {
  const signersPage: FencepostFace["signersPage"] = (query = {}, options) =>
    asking.read(options, async () => {
      const { items, next } = await api.signers(readSigners(asParameters(query)));
      return shaped(SignersPage, { ...views.signersView(items, checksum, clock.now()), next });
    });
  return {
    signersPage,
    signers: async (options?: CallOptions) => {
      const first = await signersPage({ limit: LARGEST_PAGE }, options);
      const lanes = [...first.items];
      for (let after = first.next; after !== null; ) {
        const page = await signersPage({ limit: LARGEST_PAGE, after }, options);
        lanes.push(...page.items);
        after = page.next;
      }
      return lanes;
    },
    signer: (address, options) =>
      asking.read(options, async () => {
        const lanes = await api.signer(address, { fresh: options?.fresh === true });
        return shaped(SignerLanes, views.signersView(lanes, checksum, clock.now())).items;
      }),
    policies: (options) =>
      asking.read(options, async () => shaped(PoliciesInForce, views.policiesView(await api.policies()))),
    policyUsage: (query = {}, options) =>
      asking.read(options, async () =>
        views.policyUsageView(await api.policyUsage(readUsage(asParameters(query))), checksum),
      ),
    keys: (options) => asking.read(options, async () => shaped(Keys, views.keysView(await api.keys(), checksum)).items),
    nodes: (options) =>
      asking.read(options, async () => shaped(ClusterNodes, { items: (await api.nodes()).map(views.nodeView) }).items),
    leases: (options) =>
      asking.read(options, async () => {
        const leases = await api.leases();
        return shaped(LaneLeases, { items: leases.flatMap((lease) => views.leaseView(lease, checksum) ?? []) }).items;
      }),
  } satisfies Partial<FencepostFace>;
}
