import { describe, expect, it } from "vitest";
import type { ResolvedChain } from "../../../src/main/config/chains.ts";
import { effectiveValues } from "../../../src/main/config/effective.ts";
import { configFrom } from "../../../src/main/config/load.ts";
import { SETTING_KEYS } from "../../../src/main/config/schema.ts";

function effective(content: unknown, variables: Record<string, string> = {}, saidIds: readonly number[] = []) {
  const file = { name: "f.ts", content };
  const { resolution } = configFrom({ command: "config", variables, flags: {}, file }, "n");
  const said = new Map(saidIds.map((id, index) => [resolution.chains[index] as ResolvedChain, id]));
  return new Map(effectiveValues(resolution, said).map((row) => [row.key, row]));
}

describe("the effective configuration that is printed", () => {
  it("shows every setting once, with unit and origin", () => {
    const rows = effective({ leaseDuration: "20s", maxFeeGwei: "1.25" }, { FENCEPOST_PORT: "4000" });
    expect([...rows.keys()]).toEqual(SETTING_KEYS);
    expect(rows.get("leaseDuration")).toEqual({
      key: "leaseDuration",
      variable: "FENCEPOST_LEASE_DURATION",
      value: "20s",
      origin: "file",
    });
    expect(rows.get("port")).toMatchObject({ value: "4000", origin: "environment" });
    expect(rows.get("maxFeeGwei")?.value).toBe("1.25");
    expect(rows.get("databaseUrl")).toMatchObject({ value: "not set", origin: "default" });
  });

  it("shows the number of keys, never the keys", () => {
    const rows = effective({
      privateKeys: ["1".repeat(64), "2".repeat(64)],
      apiKeys: [`ci:${"a".repeat(22)}`, `ops:${"b".repeat(22)}:read`],
    });
    expect(rows.get("privateKeys")?.value).toBe("*** (2)");
    expect(rows.get("apiKeys")?.value).toBe("ci:***, ops:***");
  });

  it("shows a chain's own settings", () => {
    const rows = effective({
      chains: [
        { rpc: "http://a", confirmations: 3, resubmitInterval: "off" },
        { id: 5, rpc: "http://b" },
      ],
    });
    expect(rows.get("chains[0].id")?.value).toBe("from the endpoint");
    expect(rows.get("chains[0].confirmations")).toMatchObject({ value: "3", origin: "chain" });
    expect(rows.get("chains[0].resubmitInterval")?.value).toBe("off");
    expect(rows.get("chains[1].id")?.value).toBe("5");
    expect(rows.has("chains[1].confirmations")).toBe(false);
  });

  it("shows that an environment variable replaced a chain's endpoint", () => {
    const rows = effective({ chains: [{ rpc: "http://a" }] }, { FENCEPOST_RPC_URL: "http://b" });
    expect(rows.get("chains[0].rpc")).toMatchObject({ value: "http://b/", origin: "environment" });
  });
});

describe("in the effective configuration, the gas cap per transaction", () => {
  // protects [Sent again, priced again, stuck] src/main/config/effective.ts
  it("is shown as the chain's known limit, or as unknown", () => {
    const variables = { FENCEPOST_RPC_URL: "http://a" };
    expect(effective({}, variables, [1]).get("maxTransactionGas")?.value).toBe("16777216 (chain 1)");
    expect(effective({}, variables, [31_337]).get("maxTransactionGas")?.value).toBe(
      "not known for chain 31337; learned from a refusal",
    );
    expect(effective({}, variables).get("maxTransactionGas")?.value).toBe("by chain id, which no endpoint reports now");
    const rows = effective({ chains: [{ id: 1, rpc: "http://a" }] });
    expect(rows.get("chains[0].maxTransactionGas")).toMatchObject({ value: "16777216 (chain 1)", origin: "default" });
    expect(effective({ maxTransactionGas: 30_000_000 }, variables, [1]).get("maxTransactionGas")?.value).toBe(
      "30000000",
    );
  });
});

describe("in the effective configuration, the cost ceilings of a transaction", () => {
  it("are shown for the endpoint's chain id", () => {
    const variables = { FENCEPOST_RPC_URL: "http://a" };
    const said = effective({}, variables, [31_337]);
    expect(said.get("maxFeeGwei")).toEqual({
      ...{ key: "maxFeeGwei", variable: "FENCEPOST_MAX_FEE_GWEI", value: "1000 (chain 31337)", origin: "default" },
    });
    expect(said.get("maxGasCostWei")?.value).toBe("1000000000000000000 (chain 31337)");
    expect(said.get("maxCostWei")?.value).toBe("not set");
    expect(effective({}, variables).get("maxFeeGwei")?.value).toBe("by chain id, which no endpoint reports now");
    expect(effective({}, variables, [424_242]).get("maxFeeGwei")?.value).toBe("100 (chain 424242 is not a known one)");
  });

  it("are shown separately for each chain", () => {
    const chains = [
      { id: 1, rpc: "http://a" },
      { rpc: "http://b", maxGasCostWei: "7" },
      { id: 137, rpc: "http://c" },
    ];
    const rows = effective({ chains });
    expect(rows.get("maxFeeGwei")?.value).toBe("by chain id");
    expect(rows.get("chains[0].maxFeeGwei")).toMatchObject({ value: "500 (chain 1)", origin: "default" });
    expect(rows.get("chains[1].maxFeeGwei")?.value).toBe("by chain id, which no endpoint reports now");
    expect(rows.get("chains[1].maxGasCostWei")).toMatchObject({ value: "7", origin: "chain" });
    expect(rows.get("chains[2].maxGasCostWei")?.value).toBe("50000000000000000000 (chain 137)");
  });

  it("are shown once if they are set for all chains", () => {
    const chains = [{ id: 1, rpc: "http://a" }];
    const rows = effective({ chains, maxGasCostWei: "9" }, { FENCEPOST_MAX_FEE_GWEI: "1.5" });
    expect(rows.get("maxFeeGwei")).toMatchObject({ value: "1.5", origin: "environment" });
    expect(rows.get("maxGasCostWei")).toMatchObject({ value: "9", origin: "file" });
    expect([...rows.keys()].filter((key) => key.startsWith("chains[0].max"))).toEqual(["chains[0].maxTransactionGas"]);
  });
});
