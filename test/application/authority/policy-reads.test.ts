import { afterEach, describe, expect, it, vi } from "vitest";
import type { FencepostApi } from "../../../src/application/operations/calls.ts";
import { ANYBODY, NO_QUOTAS, type Principal, type Scope } from "../../../src/domain/keys/principal.ts";
import type { Lane } from "../../../src/domain/lane.ts";
import { limitedTo } from "../../support/limited-api.ts";
import { policiesOf } from "../../support/policies.ts";
import { RECIPIENT, scriptedApi } from "../../support/scripted-api.ts";
import { CHAIN_ID, SIGNER, SIGNERS, transfer, World } from "../../support/world.ts";

/** Tests of the policies that an API key may read: only its own part if the key is limited to signers or chains. */

const OTHER = SIGNERS.at(-1) as typeof SIGNER;
/**
 * The signer's address in upper case: people write an address in any casing, and every casing means the same signer.
 */
const WRITTEN = `0x${SIGNER.slice(2).toUpperCase()}`;
const UNLIMITED = { signers: null, chains: null };
const LIMITED = { signers: new Set([SIGNER]), chains: new Set([CHAIN_ID]) };
const key = (scopes: readonly Scope[], limits: Pick<Principal, "signers" | "chains">): Principal => ({
  ...{ name: "mine", scopes: new Set(scopes), ...NO_QUOTAS, ...limits },
});

const DOCUMENT = {
  signers: { [WRITTEN]: { hours: "08:00-18:00" }, [OTHER]: { to: [RECIPIENT] }, "*": { chains: [1] } },
  keys: { mine: { chains: [CHAIN_ID] }, other: { chains: [10] }, "*": {} },
  abis: { erc20: ["function transfer(address to, uint256 amount)"] },
};

const change = { version: 2, changedAt: new Date(0), changedBy: "operator:a", reason: "r" };

describe("reading the policies in force", () => {
  const shownTo = (principal: Principal, document: typeof DOCUMENT | null = DOCUMENT) => {
    return limitedTo(
      principal,
      scriptedApi({ policies: async () => ({ ...change, hash: "0x01", policies: document }) }),
    ).policies();
  };

  // protects [Attacks] src/application/authority.ts
  it("shows a limited key only the policies that apply to this key", async () => {
    const { signers, keys, abis } = DOCUMENT;
    expect(await shownTo(key(["read"], LIMITED))).toEqual({
      ...change,
      hash: "0x01",
      policies: {
        signers: { [WRITTEN]: signers[WRITTEN], "*": signers["*"] },
        keys: { mine: keys.mine, "*": keys["*"] },
        abis,
      },
    });
  });

  it("shows a key limited to one chain the policies of all signers", async () => {
    const { policies } = await shownTo(key(["read"], { ...LIMITED, signers: null }));
    const { mine, "*": any } = DOCUMENT.keys;
    expect(policies).toEqual({ ...DOCUMENT, keys: { mine, "*": any } });
  });

  it("shows the whole document to an unlimited key or a caller without a key", async () => {
    for (const principal of [key(["read"], UNLIMITED), ANYBODY]) {
      expect(await shownTo(principal)).toEqual({ ...change, hash: "0x01", policies: DOCUMENT });
    }
    expect((await shownTo(key(["read"], LIMITED), null)).policies).toBeNull();
  });
});

describe("reading policy usage", () => {
  const window = { value: 1n, cost: 2n, maxValue: null, maxCost: null };
  const windows = { since: new Date(0), hour: window, day: window };
  const of = (chainId: number, signer: Lane["signer"]) => ({ lane: { chainId, signer }, ...windows });
  const by = (chainId: number, name: string) => ({ chainId, key: name, ...windows });
  const all: Awaited<ReturnType<FencepostApi["policyUsage"]>> = {
    at: new Date(0),
    signers: [of(CHAIN_ID, SIGNER), of(CHAIN_ID, OTHER), of(10, SIGNER)],
    keys: [by(CHAIN_ID, "mine"), by(10, "mine"), by(CHAIN_ID, "other")],
  };

  // protects [Attacks] src/application/authority.ts
  it("shows a limited key only its own lanes and its own usage", async () => {
    const api = limitedTo(key(["read"], LIMITED), scriptedApi({ policyUsage: async () => all }));
    const { signers, keys } = await api.policyUsage();
    expect([signers, keys]).toEqual([[of(CHAIN_ID, SIGNER)], [by(CHAIN_ID, "mine")]]);
  });

  it("shows an unlimited key everything", async () => {
    const api = limitedTo(key(["read"], UNLIMITED), scriptedApi({ policyUsage: async () => all }));
    expect(await api.policyUsage()).toEqual(all);
  });

  // protects [Attacks] src/application/authority.ts
  it("is refused if a limited key names another signer or key", async () => {
    const policyUsage = vi.fn(async () => all);
    const api = limitedTo(key(["read", "operate"], LIMITED), scriptedApi({ policyUsage }));
    for (const query of [{ signer: OTHER }, { key: "other" }, { key: "unheard-of" }]) {
      await expect(api.policyUsage(query)).rejects.toMatchObject({ code: "FORBIDDEN", extras: { rule: "signers" } });
    }
    const ofOneChain = limitedTo(key(["read"], { ...LIMITED, signers: null }), scriptedApi({ policyUsage }));
    await expect(ofOneChain.policyUsage({ key: "other" })).rejects.toMatchObject({ extras: { rule: "chains" } });
    expect(policyUsage).not.toHaveBeenCalled();
    await api.policyUsage({ signer: WRITTEN, key: "mine" });
    expect(policyUsage).toHaveBeenCalledExactlyOnceWith({ signer: WRITTEN, key: "mine" });
  });
});

describe("a dry run of the policy", () => {
  let world: World | undefined;
  afterEach(async () => world?.close());

  // protects [Attacks] src/application/authority.ts
  it("requires the scope operate or admin if it is made for another key", async () => {
    const checkPolicy = vi.fn(async () => ({ allowed: true, value: 1n, cost: 2n }));
    const script = scriptedApi({ checkPolicy });
    for (const scopes of [["read"], ["submit"], ["read", "submit", "reserve", "approve"]] as const) {
      const principal = key(scopes, UNLIMITED);
      const api = limitedTo(principal, script);
      await expect(api.checkPolicy({}, "other")).rejects.toMatchObject({
        code: "FORBIDDEN",
        extras: { rule: "scope:operate" },
      });
      expect(checkPolicy).not.toHaveBeenCalled();
      await api.checkPolicy({});
      await api.checkPolicy({}, "mine");
      expect(checkPolicy.mock.calls).toEqual([
        [{}, "mine", principal],
        [{}, "mine", principal],
      ]);
      checkPolicy.mockClear();
    }
    for (const scope of ["operate", "admin"] as const) {
      await limitedTo(key(["read", scope], UNLIMITED), script).checkPolicy({}, "other");
      expect(checkPolicy).toHaveBeenLastCalledWith({}, "other", expect.anything());
    }
  });

  // protects [Attacks] src/application/authority.ts
  it("is refused if a limited key requests it for another key", async () => {
    const checkPolicy = vi.fn(async () => ({ allowed: true, value: 1n, cost: 2n }));
    for (const [limits, rule] of [
      [LIMITED, "signers"],
      [{ ...LIMITED, signers: null }, "chains"],
    ] as const) {
      const api = limitedTo(key(["read", "operate", "admin"], limits), scriptedApi({ checkPolicy }));
      await expect(api.checkPolicy({}, "other")).rejects.toMatchObject({ code: "FORBIDDEN", extras: { rule } });
      expect(checkPolicy).not.toHaveBeenCalled();
      await api.checkPolicy({}, "mine");
      expect(checkPolicy).toHaveBeenCalledOnce();
      checkPolicy.mockClear();
    }
  });

  it("applies the policy of the key for which it is made", async () => {
    const policies = policiesOf({ keys: { mine: { maxValue: { perTransaction: "0" } } } });
    world = new World({ policies });
    const { node } = await world.startNode();
    const mine = limitedTo(key(["read", "operate"], LIMITED), node.api);
    expect(await world.settle(mine.checkPolicy(transfer()))).toMatchObject({
      allowed: false,
      rule: "key.maxValue.perTransaction",
    });
    const anybodys = limitedTo(key(["read", "operate"], UNLIMITED), node.api);
    expect(await world.settle(anybodys.checkPolicy(transfer(), "other"))).toMatchObject({ allowed: true });
    const elsewhere = world.settle(mine.checkPolicy(transfer({ signer: OTHER })).catch((reason: unknown) => reason));
    expect(await elsewhere).toMatchObject({ code: "FORBIDDEN", extras: { rule: "signers" } });
    expect(world.rows()).toEqual([]);
  });
});
