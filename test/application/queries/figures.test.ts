import { afterEach, describe, expect, it } from "vitest";
import { createCodec } from "../../../src/adapters/evm/codec/codec.ts";
import { limitedTo } from "../../../src/application/authority.ts";
import { KeyRates } from "../../../src/application/key-rates.ts";
import { costs } from "../../../src/application/queries/costs.ts";
import type { ANYBODY } from "../../../src/domain/keys/principal.ts";
import type { CostFilter } from "../../../src/ports/query-store.ts";
import { createManualClock } from "../../doubles/manual-clock.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

const codec = createCodec();
let world: World;
afterEach(() => world.close());

const OTHER = SIGNERS[1] as typeof SIGNER;

async function settledWorld(count: number, options: WorldOptions = {}): Promise<WorldNode> {
  world = new World(options);
  const entry = await world.startNode();
  for (let n = 0; n < count; n++) {
    const request = transfer({ requestId: `r${n}`, signer: SIGNERS[n % 2] });
    await world.settle(entry.node.api.create(request, n % 2 === 0 ? "shop" : null));
  }
  await world.allSettled(count);
  return entry;
}

function principal(signers: readonly (typeof SIGNER)[]): typeof ANYBODY {
  const scopes = new Set(["read"] as const);
  const quotas = { createsPerSecond: null, readsPerSecond: null, queueShare: null };
  return { name: "reader", scopes, signers: new Set(signers), chains: null, ...quotas };
}

const as = ({ node }: WorldNode, signers: readonly (typeof SIGNER)[]) =>
  limitedTo(principal(signers), node.api, new KeyRates(world.clock));

/** Fees of all receipts, and the value of all confirmed transfers. */
function paid() {
  const rows = world.rows();
  const fees = rows.reduce(
    (sum, { receipt }) => sum + (receipt?.gasUsed ?? 0n) * (receipt?.effectiveGasPrice ?? 0n),
    0n,
  );
  return { fees, value: rows.reduce((sum, { payload }) => sum + payload.value, 0n) };
}

describe("the costs query", () => {
  it("adds up exactly what the receipts say, by signer, key, day and receiver", async () => {
    const { node } = await settledWorld(5, { node: { signerNames: new Map([[SIGNER, "payouts-1"]]) } });
    for (const by of ["signer", "key", "day", "receiver"] as const) {
      const { items, next } = await world.settle(node.api.costs({ by }));
      const sum = (name: "fees" | "value") => items.reduce((total, item) => total + item[name], 0n);
      expect({ fees: sum("fees"), value: sum("value") }).toEqual(paid());
      expect(items.reduce((total, { confirmed }) => total + confirmed, 0)).toBe(5);
      expect(next).toBeNull();
    }
    expect(paid().fees).toBeGreaterThan(0n);
    const bySigner = (await world.settle(node.api.costs({ by: "signer" }))).items;
    expect(bySigner.map(({ group, name, transactions }) => [group?.toLowerCase(), name, transactions])).toEqual([
      [SIGNER, "payouts-1", 3],
      [OTHER, undefined, 2],
    ]);
    const byKey = (await world.settle(node.api.costs({ by: "key" }))).items;
    expect(byKey.map(({ group, transactions }) => [group, transactions])).toEqual([
      ["shop", 3],
      [null, 2],
    ]);
  });

  it("names a receiver that is one of the signers, unless the key may not see that signer", async () => {
    const entry = await settledWorld(0, { node: { signerNames: new Map([[OTHER, "payouts-2"]]) } });
    const { payload } = transfer();
    await world.settle(entry.node.api.create(transfer({ payload: { ...(payload as object), to: OTHER } }), null));
    await world.allSettled(1);
    const names = async (api: Pick<typeof entry.node.api, "costs">) =>
      (await world.settle(api.costs({ by: "receiver" }))).items.map(({ group, name }) => [group?.toLowerCase(), name]);
    expect(await names(entry.node.api)).toEqual([[OTHER, "payouts-2"]]);
    expect(await names(as(entry, [SIGNER]))).toEqual([[OTHER, undefined]]);
  });

  it("counts only the range that is asked for, and refuses an empty one", async () => {
    const { node } = await settledWorld(2);
    const now = world.clock.now().getTime();
    const [from, to] = [new Date(now - 1_000_000), new Date(now + 1_000)];
    expect((await world.settle(node.api.costs({ from, to }))).items).toHaveLength(2);
    expect((await world.settle(node.api.costs({ from: to, to: new Date(now + 2_000) }))).items).toEqual([]);
    for (const wrong of [
      { from: to, to: from },
      { from: to, to },
      { from: "yesterday" },
      { by: "colour" },
    ] as never[]) {
      await expect(world.settle(node.api.costs(wrong))).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    }
  });

  it("shows a restricted key only its own signers", async () => {
    const entry = await settledWorld(4);
    const { items } = await world.settle(as(entry, [OTHER]).costs({}));
    expect(items.map(({ group }) => group?.toLowerCase())).toEqual([OTHER]);
    await expect(world.settle(as(entry, [OTHER]).costs({ signer: SIGNER }))).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
  });

  // protects [Attacks] src/application/queries/costs.ts
  it("reads nothing of other lanes for a restricted key, so that neither next nor its place depends on them", async () => {
    const limits = principal([OTHER]);
    const read: unknown[] = [];
    const own = "0197f000-0000-7000-8000-000000000001";
    const store = {
      costs: async ({ within }: CostFilter) => {
        read.push(within);
        return { items: [], next: own };
      },
    } as unknown as Parameters<typeof costs>[0]["store"];
    const ports = { codec, store, clock: createManualClock(), settings: {} as never };
    const { next } = await costs(ports, {}, limits);
    expect(Buffer.from(next ?? "", "base64url").toString("hex")).toBe(own.replaceAll("-", ""));
    expect(read).toEqual(Array.from({ length: 20 }, () => limits));
  });

  it("adds to each completion what its transaction has cost, if that is asked for", async () => {
    const { node } = await settledWorld(3);
    const page = await world.settle(node.api.completions({ after: 0, include: "cost" }));
    const fees = page.items.reduce((sum, { cost }) => sum + (cost?.fees ?? 0n), 0n);
    expect(fees).toBe(paid().fees);
    expect(page.items.map(({ cost }) => cost?.owner).sort()).toEqual(["shop", "shop", null].sort());
    const plain = await world.settle(node.api.completions({ after: 0 }));
    expect(plain.items.some((item) => "cost" in item)).toBe(false);
  });
});

describe("the history query", () => {
  const sumOf = (buckets: readonly { readonly created: number; readonly completed: number }[]) => ({
    created: buckets.reduce((sum, each) => sum + each.created, 0),
    completed: buckets.reduce((sum, each) => sum + each.completed, 0),
  });

  it("has every create and outcome once the figures are written, with fees, keys and signers", async () => {
    const { node } = await settledWorld(6);
    await world.clock.advance(12_000);
    const whole = await world.settle(node.api.history({ chainId: CHAIN_ID }));
    expect(sumOf(whole.buckets)).toEqual({ created: 6, completed: 6 });
    expect(whole.buckets.reduce((sum, { fees }) => sum + fees, 0n)).toBe(paid().fees);
    expect(new Map(whole.keys.map(({ key, completed }) => [key, completed]))).toEqual(
      new Map([
        ["shop", 3],
        [null, 3],
      ]),
    );
    expect(whole.signers.map(({ signer, completed }) => [signer, completed]).sort()).toEqual(
      [
        [SIGNER, 3],
        [OTHER, 3],
      ].sort(),
    );
    const [bucket] = whole.buckets.filter(({ completed }) => completed > 0);
    expect(bucket?.finalityMs?.p50).toBeGreaterThan(0);
    expect(bucket?.finalityMs?.p95).toBeGreaterThanOrEqual(bucket?.finalityMs?.p50 ?? Number.POSITIVE_INFINITY);
    expect(bucket?.offered?.max).toBeGreaterThan(0n);
    expect(bucket?.baseFee?.max).toBeGreaterThan(0n);
    const lane = await world.settle(node.api.history({ signer: OTHER, chainId: CHAIN_ID }));
    expect(sumOf(lane.buckets)).toEqual({ created: 3, completed: 3 });
  });

  // protects [Figures] src/application/lane/figure-book.ts
  it("writes once in several seconds, not for each transaction", async () => {
    world = new World();
    const { node } = await world.startNode();
    const written = () => [...world.database.state.figures.values()].length;
    for (let n = 0; n < 5; n++) await world.settle(node.api.create(transfer({ requestId: `r${n}` })));
    expect(written()).toBe(0);
    await world.allSettled(5);
    await world.clock.advance(12_000);
    // A minute and an hour, of the lane and of its chain.
    expect(written()).toBeLessThanOrEqual(8);
    expect(written()).toBeGreaterThanOrEqual(4);
  });

  it("writes the last figures when the node closes", async () => {
    const entry = await settledWorld(2);
    await world.settle(entry.node.close());
    const rows = [...world.database.state.figures.values()].filter(
      (row) => row.signer === "" && row.stepSeconds === 60,
    );
    expect(rows.reduce((sum, { completed }) => sum + completed, 0)).toBe(2);
  });

  it("shows a restricted key only its own signers", async () => {
    const entry = await settledWorld(4);
    await world.clock.advance(12_000);
    const mine = await world.settle(as(entry, [OTHER]).history({}));
    expect(sumOf(mine.buckets)).toEqual({ created: 2, completed: 2 });
    expect(mine.signers.map(({ signer }) => signer)).toEqual([OTHER]);
    expect(mine.keys.map(({ key }) => key)).toEqual([null]);
    await expect(world.settle(as(entry, [OTHER]).history({ signer: SIGNER }))).rejects.toMatchObject({
      code: "FORBIDDEN",
    });
  });

  it("chooses buckets for the range, and refuses too many of them", async () => {
    const { node } = await settledWorld(0);
    const now = world.clock.now().getTime();
    const stepOf = async (hours: number, step?: number) => {
      const from = new Date(now - hours * 3_600_000);
      const query = { from, to: new Date(now), ...(step !== undefined && { step }) };
      return (await world.settle(node.api.history(query))).stepSeconds;
    };
    expect(await stepOf(1)).toBe(60);
    expect(await stepOf(24)).toBe(300);
    expect(await stepOf(24 * 7)).toBe(3_600);
    expect(await stepOf(24 * 30)).toBe(21_600);
    expect(await stepOf(1, 61)).toBe(120);
    expect(await stepOf(24 * 7, 60)).toBe(3_600);
    await expect(stepOf(24 * 365 * 30)).rejects.toMatchObject({ code: "INVALID_REQUEST" });
    await expect(stepOf(1, 59)).rejects.toMatchObject({ code: "INVALID_REQUEST" });
  });
});

describe("the caller's own key, and the names of signers", () => {
  it("are shown as the key and the configuration have them", async () => {
    const names = new Map([
      [SIGNER, "payouts-1"],
      [OTHER, "payouts-2"],
    ] as const);
    const entry = await settledWorld(0, { node: { signerNames: names } });
    expect(await world.settle(entry.node.api.me())).toMatchObject({ key: null, signers: null, chains: null });
    const key = as(entry, [OTHER]);
    expect(await world.settle(key.me())).toMatchObject({ key: "reader", scopes: ["read"], signers: [OTHER] });
    expect(await world.settle(key.namedSigners())).toEqual([{ signer: OTHER, name: "payouts-2" }]);
    expect(await world.settle(entry.node.api.namedSigners())).toHaveLength(2);
    const [lane] = await world.settle(entry.node.api.signer(OTHER));
    expect(lane?.name).toBe("payouts-2");
  });
});

describe("ABIs", () => {
  const token = "0x00000000000000000000000000000000000000aa" as const;
  const payouts = { name: "Payouts", addresses: [token], abi: ["function transfer(address receiver, uint256 wei)"] };
  const data = codec.encodeCall("transfer(address,uint256)", [token, "42"]);

  async function sentTo(to: string, options: WorldOptions = {}) {
    const { node } = await settledWorld(0, options);
    const fees = { gas: 60_000, maxFeePerGas: "20000000000", maxPriorityFeePerGas: "1000000000" };
    const request = { ...transfer({ payload: { to, data, ...fees } }), allowNoCode: true };
    const { txId } = await world.settle(node.api.create(request));
    return { node, txId };
  }

  it("put calls into words, by contract, by default, and by the token standards", async () => {
    const { node, txId } = await sentTo(token);
    const decoded = async () => (await world.settle(node.api.transaction(txId))).decoded;
    expect(await decoded()).toMatchObject({
      contract: null,
      name: "transfer",
      args: [{ name: "to" }, { value: "42" }],
    });
    await world.settle(node.api.putAbis({ items: [{ ...payouts, name: "Other", addresses: [SIGNER] }] }, "operator:a"));
    expect((await decoded())?.contract).toBeNull();
    await world.settle(node.api.putAbis({ items: [{ name: "Any", abi: payouts.abi }] }, "operator:a"));
    expect((await decoded())?.contract).toBe("Any");
    const items = [{ name: "Any", abi: ["function transfer(address a, uint256 b)"] }, payouts];
    const stored = await world.settle(node.api.putAbis({ items }, "operator:b"));
    expect(stored).toMatchObject({ items, changedBy: "operator:b" });
    expect(await decoded()).toMatchObject({ contract: "Payouts", args: [{ name: "receiver" }, { name: "wei" }] });
    const [listed] = (await world.settle(node.api.transactions({}))).items;
    expect(listed?.decoded?.contract).toBe("Payouts");
  });

  it.each([
    [{}, "items"],
    [{ items: [], more: 1 }, "more"],
    [{ items: [{ abi: payouts.abi }] }, "items.0.name"],
    [{ items: [{ name: "x", abi: [] }] }, "items.0.abi"],
    [{ items: [{ name: "x", abi: ["function ("] }] }, "items.0.abi"],
    [{ items: [payouts, { ...payouts, addresses: ["0x1"] }] }, "items.1.addresses.0"],
    [{ items: Array.from({ length: 501 }, () => payouts) }, "items"],
    [{ items: [{ ...payouts, name: "red\u001b[31m" }] }, "items.0.name"],
    [{ items: [payouts, { name: "x", abi: [{ type: "fallback", note: "\0" }] }] }, "items.1"],
    [{ items: [{ name: "x", abi: [{ type: "fallback", "\ud800": 1 }] }] }, "items.0"],
    [
      { items: [{ name: "x", abi: [{ type: "fallback", note: JSON.parse("[".repeat(61) + "]".repeat(61)) }] }] },
      "items.0",
    ],
  ])("are refused with the path of the mistake: %j", async (request, path) => {
    const { node } = await settledWorld(0);
    await expect(world.settle(node.api.putAbis(request, "operator:a"))).rejects.toMatchObject({
      ...{ code: "INVALID_REQUEST", extras: { path } },
    });
    expect((await world.settle(node.api.abis())).items).toEqual([]);
  });

  // protects [Attacks] src/application/authority.ts
  it("are read and changed only by a key without limits; its own transactions are in words for every key", async () => {
    const { node, txId } = await sentTo(token);
    await world.settle(node.api.putAbis({ items: [payouts] }, "operator:a"));
    const limited = limitedTo(principal([SIGNER]), node.api, new KeyRates(world.clock));
    const refused = { code: "FORBIDDEN", extras: { rule: "signers" } };
    await expect(world.settle(limited.putAbis({ items: [] }, "operator:a"))).rejects.toMatchObject(refused);
    await expect(world.settle(limited.abis())).rejects.toMatchObject(refused);
    expect((await world.settle(limited.transaction(txId))).decoded?.contract).toBe("Payouts");
    const everywhere = limitedTo({ ...principal([]), signers: null }, node.api, new KeyRates(world.clock));
    expect((await world.settle(everywhere.abis())).items).toHaveLength(1);
  });

  it("of the configuration are used for what the stored ones do not describe", async () => {
    const other = { name: "Other", addresses: [SIGNER], abi: payouts.abi };
    const { node, txId } = await sentTo(token, { node: { abis: [payouts, other] } });
    const decoded = async () => (await world.settle(node.api.transaction(txId))).decoded;
    expect(await decoded()).toMatchObject({ contract: "Payouts", args: [{ name: "receiver" }, { name: "wei" }] });
    expect(await world.settle(node.api.abis())).toMatchObject({ items: [], configured: [payouts, other] });
    await world.settle(node.api.putAbis({ items: [{ name: "Any", abi: payouts.abi }] }, "operator:a"));
    expect((await decoded())?.contract).toBe("Payouts");
    const stored = await world.settle(node.api.putAbis({ items: [{ ...payouts, name: "Stored" }] }, "operator:a"));
    expect(stored.configured).toHaveLength(2);
    expect((await decoded())?.contract).toBe("Stored");
  });

  it("put the call into words in an explanation too, cut to a line", async () => {
    const { node, txId } = await sentTo(token);
    const summary = async () => (await world.settle(node.api.explain(txId))).summary;
    expect(await summary()).toMatch(/ It calls its receiver\.transfer\(to: 0x0+aA, amount: 42\)\.$/i);
    const name = `a${"b".repeat(400)}`;
    const abi = [`function transfer(address ${name}, uint256 wei)`];
    await world.settle(node.api.putAbis({ items: [{ name: "Payouts", addresses: [token], abi }] }, "operator:a"));
    expect(await summary()).toMatch(/ It calls Payouts\.transfer\(ab+/);
    expect((await summary()).length).toBeLessThan(700);
  });
});
