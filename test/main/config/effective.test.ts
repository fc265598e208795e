import { describe, expect, it } from "vitest";
import { effectiveValues } from "../../../src/main/config/effective.ts";
import { configFrom } from "../../../src/main/config/load.ts";
import { SETTING_KEYS } from "../../../src/main/config/schema.ts";

function effective(content: unknown, variables: Record<string, string> = {}) {
  const file = { name: "f.ts", content };
  const { resolution } = configFrom({ command: "config", variables, flags: {}, file }, "n");
  return new Map(effectiveValues(resolution).map((row) => [row.key, row]));
}

describe("effective values", () => {
  it("show every setting once, with unit and origin", () => {
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

  it("show how many keys there are, never which", () => {
    const rows = effective({ privateKeys: ["1".repeat(64), "2".repeat(64)], apiKeys: ["ci:aaa", "ops:bbb"] });
    expect(rows.get("privateKeys")?.value).toBe("*** (2)");
    expect(rows.get("apiKeys")?.value).toBe("ci:***, ops:***");
  });

  it("show what a chain says for itself", () => {
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

  it("show that the environment replaced a chain's endpoint", () => {
    const rows = effective({ chains: [{ rpc: "http://a" }] }, { FENCEPOST_RPC_URL: "http://b" });
    expect(rows.get("chains[0].rpc")).toMatchObject({ value: "http://b/", origin: "environment" });
  });
});
