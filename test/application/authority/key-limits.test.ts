import { afterEach, describe, expect, it, vi } from "vitest";
import { KeyRates } from "../../../src/application/key-rates.ts";
import type { FencepostApi } from "../../../src/application/operations/calls.ts";
import { ANYBODY, NO_QUOTAS, type Principal, SCOPES } from "../../../src/domain/keys/principal.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import type { Explanation } from "../../../src/domain/troubles/situation.ts";
import { limitedTo } from "../../support/limited-api.ts";
import {
  sampleCompletion,
  sampleLease,
  sampleSigner,
  sampleTransaction,
  sampleTxId,
  scriptedApi,
} from "../../support/scripted-api.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World } from "../../support/world.ts";

const MINE: Lane = { chainId: CHAIN_ID, signer: SIGNER };
const FOREIGN: readonly Lane[] = [
  { chainId: CHAIN_ID, signer: SIGNERS.at(-1) as typeof SIGNER },
  { chainId: 10, signer: SIGNER },
];
const key = (wishes: Partial<Principal> = {}): Principal => ({
  ...{ name: "mine", scopes: new Set(SCOPES), signers: new Set([SIGNER]), chains: new Set([CHAIN_ID]) },
  ...NO_QUOTAS,
  ...wishes,
});
const each = <T>(make: (lane: Lane, at: number) => T): readonly T[] => [MINE, ...FOREIGN].map(make);

function cancelOf(txId: string): Explanation["actions"][number] {
  const path = `/api/v1/tx/${txId}/cancel`;
  return { action: "cancel", code: "CANCEL", label: "", method: "POST", path, body: { reason: "r" }, scope: "operate" };
}

describe("an API key limited to signers and chains", () => {
  // protects [Attacks] src/application/authority.ts
  it("gets NOT_FOUND for a transaction of another lane", async () => {
    for (const lane of FOREIGN) {
      const act = vi.fn(async () => sampleTransaction());
      const transaction = async () => sampleTransaction({ lane });
      const explain = async (): Promise<Explanation> => ({ summary: "", causes: [], help: [], actions: [] });
      const transactionByRequest = transaction;
      const api = limitedTo(key(), scriptedApi({ act, transaction, explain, transactionByRequest }));
      const actionRequest = { action: "cancel", txId: "t", request: {}, actor: "operator:mine" } as const;
      const named = { signer: SIGNER, requestId: "r" };
      for (const asked of [
        api.transaction("t"),
        api.explain("t"),
        api.act(actionRequest),
        api.transactionByRequest(named),
      ]) {
        await expect(asked).rejects.toMatchObject({
          code: "NOT_FOUND",
          message: expect.stringContaining("there is no"),
        });
      }
      expect(act).not.toHaveBeenCalled();
    }
  });

  it("is refused if it names another signer or chain in a query", async () => {
    const signers = scriptedApi({});
    const api = limitedTo(key(), signers);
    const [other, chain] = FOREIGN as [Lane, Lane];
    for (const asked of [
      api.signer(other.signer.toUpperCase().replace("0X", "0x")),
      api.transactions({ signer: other.signer }),
      api.transactionByRequest({ signer: other.signer, requestId: "r" }),
    ]) {
      await expect(asked).rejects.toMatchObject({ code: "FORBIDDEN", extras: { rule: "signers" } });
    }
    for (const asked of [
      api.transactions({ chainId: chain.chainId }),
      api.transactionByRequest({ signer: SIGNER, chainId: chain.chainId, requestId: "r" }),
    ]) {
      await expect(asked).rejects.toMatchObject({ code: "FORBIDDEN", extras: { rule: "chains" } });
    }
  });

  // protects [Attacks] src/application/authority.ts
  it("sees only its own lanes in every list and in the feed", async () => {
    const api = limitedTo(
      key(),
      scriptedApi({
        completions: async () => ({
          epoch: 1,
          items: each((lane, at) => sampleCompletion({ lane, seq: at + 5 })),
          next: 7,
        }),
        signer: async () => each((lane) => sampleSigner({ lane })),
        leases: async () => each((lane) => sampleLease({ lane })),
      }),
    );
    const lanes = (items: readonly { readonly lane: Lane }[]) => items.map(({ lane }) => lane);
    expect(lanes(await api.signer(SIGNER))).toEqual([MINE]);
    expect(lanes(await api.leases())).toEqual([MINE]);
    const feed = await api.completions({ after: 4 });
    expect(feed).toMatchObject({ epoch: 1, items: [{ seq: 5 }], next: 7, filtered: true });
    const unlimited = limitedTo(
      key({ signers: null, chains: null }),
      scriptedApi({ completions: async () => ({ epoch: 1, items: [], next: 0 }) }),
    );
    expect(await unlimited.completions({ after: 0 })).toEqual({ epoch: 1, items: [], next: 0 });
  });

  // protects [Attacks] src/application/authority.ts, src/application/queries/transactions.ts, src/application/queries/signers.ts
  it("gets full pages whose cursors name nothing of other lanes", async () => {
    const world = new World();
    const { node } = await world.startNode();
    const [first, other, last] = SIGNERS as unknown as readonly [typeof SIGNER, typeof SIGNER, typeof SIGNER];
    for (const [n, signer] of [first, other, other, other, last, other].entries())
      await world.settle(node.api.create(transfer({ requestId: `r${n}`, signer })));
    const api = limitedTo(key({ signers: new Set([first, last]), chains: null }), node.api);
    const read = (cursor: string) => Buffer.from(cursor, "base64url");
    const newest = await world.settle(api.transactions({ limit: 1 }));
    const oldest = await world.settle(api.transactions({ limit: 1, after: newest.next ?? "" }));
    expect([newest, oldest].map(({ items }) => items.map(({ lane }) => lane.signer))).toEqual([[last], [first]]);
    expect(oldest.next).toBeNull();
    expect(read(newest.next ?? "").toString("hex")).toBe(newest.items[0]?.txId.replaceAll("-", ""));
    const lanes = await world.settle(api.signers({ limit: 1 }));
    expect(read(lanes.next ?? "").toString()).toContain(lanes.items[0]?.address);
    const more = await world.settle(api.signers({ limit: 1, after: lanes.next ?? "" }));
    expect([lanes, more].flatMap(({ items }) => items.map(({ address }) => address)).sort()).toEqual(
      [first, last].sort(),
    );
    expect(more.next).toBeNull();
    await world.close();
  });

  // protects [Attacks] src/application/authority.ts
  it("can kill only its own signers", async () => {
    const [other] = FOREIGN as [Lane];
    const killOf = (signer: Lane["signer"] | null) => ({ killId: "k", signer, actor: "operator:ops", reason: "why" });
    const kills = [killOf(null), killOf(SIGNER), killOf(other.signer)];
    const kill = vi.fn(async () => ({ durable: true, kills, nodes: [] }));
    const script = scriptedApi({ kill, endKill: kill });
    const actionRequest = (signer: string | null) => ({ signer, request: {}, actor: "operator:mine" });
    const mine = limitedTo(key({ chains: null }), script);
    const ofOneChain = limitedTo(key({ signers: null }), script);
    for (const method of ["kill", "endKill"] as const) {
      for (const signer of [null, other.signer]) {
        await expect(mine[method](actionRequest(signer))).rejects.toMatchObject({ extras: { rule: "signers" } });
      }
      await expect(ofOneChain[method](actionRequest(SIGNER))).rejects.toMatchObject({ extras: { rule: "chains" } });
      expect(kill).not.toHaveBeenCalled();
      expect((await mine[method](actionRequest(SIGNER))).kills).toEqual([killOf(null), killOf(SIGNER)]);
      kill.mockClear();
    }
    const unlimited = limitedTo(key({ signers: null, chains: null }), script);
    expect((await unlimited.kill(actionRequest(null))).kills).toEqual(kills);
  });

  // protects [Attacks] src/application/authority.ts
  it("does not see the id of the transaction that blocks its own", async () => {
    const full: Explanation = {
      summary: "waits",
      causes: [{ code: "WAITING_BEHIND", text: "waits behind nonce 3", data: { nonce: 3, txId: sampleTxId(3) } }],
      blockedBy: { txId: sampleTxId(3), nonce: 3 },
      help: [],
      actions: [cancelOf(sampleTxId(3)), cancelOf("t")],
    };
    const asked: unknown[] = [];
    const explain: FencepostApi["explain"] = async (_, options) => {
      asked.push(options);
      return full;
    };
    const script = { transaction: async () => sampleTransaction({ lane: MINE }), explain };
    const explanation = await limitedTo(key(), scriptedApi(script)).explain("t");
    expect(explanation).toEqual({
      ...full,
      causes: [{ ...full.causes[0], data: { nonce: 3 } }],
      blockedBy: { nonce: 3 },
      actions: [cancelOf("t")],
    });
    expect(asked).toEqual([{ blockerByNonce: true }]);
    expect(await limitedTo(ANYBODY, scriptedApi(script)).explain("t")).toEqual(full);
  });
});

describe("API key limits on a node", () => {
  let world: World;
  afterEach(() => world.close());

  // protects [Attacks] src/domain/keys/principal.ts, src/application/requests/normalise.ts, src/application/operations/operations.ts
  it("refuse creates, reservations and lane actions on other lanes", async () => {
    world = new World();
    const { node } = await world.startNode();
    const [other] = FOREIGN as [Lane];
    const api = limitedTo(key(), node.api);
    const mine = await world.settle(api.create(transfer()));
    expect(await node.api.transaction(mine.txId)).toMatchObject({ owner: "mine", nonce: 0 });
    const refused = { code: "FORBIDDEN", extras: { rule: "signers" } };
    const { signer } = other;
    await expect(world.settle(api.create(transfer({ signer })))).rejects.toMatchObject(refused);
    expect(await world.settle(api.createBatch([transfer({ signer }), transfer()]))).toMatchObject([
      refused,
      { nonce: 1 },
    ]);
    await expect(world.settle(api.reserveNonce({ signer }))).rejects.toMatchObject(refused);
    const actionRequest = {
      action: "suspend",
      signer,
      request: { reason: "because" },
      actor: "operator:mine",
    } as const;
    await expect(world.settle(api.actOnLane(actionRequest))).rejects.toMatchObject(refused);
    expect(world.rows().map(({ lane }) => lane.signer)).toEqual([SIGNER, SIGNER]);
  });

  // protects [Attacks] src/application/authority.ts
  it("count a forwarded create only once against the key's rate", async () => {
    world = new World();
    const nodes = [await world.startNode(), await world.startNode()];
    await world.until(() => world.ownerOf(SIGNER) !== undefined);
    const slow = key({ createsPerSecond: 5 });
    const counts = nodes.map(() => new KeyRates(world.clock));
    const forwarding = nodes.findIndex((_, at) => world.ownerOf(SIGNER) !== `node-${at + 1}`);
    const { api } = (nodes[forwarding] as (typeof nodes)[number]).node;
    const asked = limitedTo(slow, api, counts[forwarding] as KeyRates);
    const left: (number | null)[][] = [];
    const batch = asked.createBatch([transfer(), transfer(), transfer()]);
    left.push(counts.map((count) => count.left(slow)));
    const results = await world.settle(batch);
    expect(results.map((result) => "nonce" in result && result.nonce)).toEqual([0, 1, 2]);
    expect(world.network.forwards).toMatchObject([{ count: 3 }]);
    expect(left).toEqual([forwarding === 0 ? [2, 5] : [5, 2]]);
  });

  // protects [Attacks] src/domain/keys/principal.ts, src/application/stages/1-create/create.ts, src/application/operations/reservations.ts
  it("cause REQUEST_ID_REUSED for a request id that another key used", async () => {
    world = new World();
    const { node } = await world.startNode();
    const unlimited = { signers: null, chains: null };
    const [shop, wallet] = ["shop", "wallet"].map((name) => limitedTo(key({ name, ...unlimited }), node.api));
    const request = transfer({ requestId: "order-1" });
    const first = await world.settle(shop?.create(request) as Promise<{ txId: string }>);
    expect(await world.settle(shop?.create(request) as Promise<unknown>)).toMatchObject({ outcome: "existing" });
    const asking = [
      () => wallet?.create(request),
      () => wallet?.reserveNonce({ signer: SIGNER, requestId: "order-1" }),
    ];
    for (const ask of asking) {
      const error = await world.settle((ask() as Promise<unknown>).catch((reason: unknown) => reason));
      expect(error).toMatchObject({ code: "REQUEST_ID_REUSED", extras: {} });
      expect(JSON.stringify([String(error), error])).not.toContain(first.txId);
    }
    await world.settle(shop?.reserveNonce({ signer: SIGNER, requestId: "payout" }) as Promise<unknown>);
    const again = wallet?.reserveNonce({ signer: SIGNER, requestId: "payout" }).catch((reason: unknown) => reason);
    expect(await world.settle(again as Promise<unknown>)).toMatchObject({ code: "REQUEST_ID_REUSED", extras: {} });
  });

  it("permit a key to repeat a request that was created without a key", async () => {
    world = new World();
    const { node } = await world.startNode();
    const request = transfer({ requestId: "order-1" });
    const { txId } = await world.settle(node.api.create(request));
    const api = limitedTo(key(), node.api);
    expect(await world.settle(api.create(request))).toMatchObject({ outcome: "existing", txId });
    expect(await node.api.transaction(txId)).toMatchObject({ owner: null });
  });
});
