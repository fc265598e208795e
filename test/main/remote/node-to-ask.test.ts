import { describe, expect, it } from "vitest";
import type { Profiles } from "../../../src/adapters/cli/profiles.ts";
import { resolveReach } from "../../../src/main/config/resolve.ts";
import { nodeToAsk } from "../../../src/main/remote/node-to-ask.ts";

const KEY = "k".repeat(22);
const KEPT: Profiles = {
  current: "production",
  profiles: { production: { url: "https://relay.example", apiKey: "kept" }, local: { url: "http://127.0.0.1:3000" } },
};

function asked(
  options: object,
  variables: Record<string, string> = {},
  { kept = KEPT, file = null as object | null } = {},
) {
  const content = file === null ? null : { name: "fencepost.config.ts", content: file };
  return nodeToAsk(options, {
    readProfiles: async () => ({ file: "profiles.json", ...kept }),
    load: async () => resolveReach({ command: "config", variables, flags: {}, file: content }),
  });
}

describe("the node that a command calls", () => {
  it("is chosen first by flag, then by profile or configuration", async () => {
    const configured = { FENCEPOST_PORT: "4000", FENCEPOST_API_KEYS: `ops:${KEY}` };
    expect(await asked({ url: "http://n", apiKey: "mine" }, configured)).toEqual({ url: "http://n", apiKey: "mine" });
    expect(await asked({ profile: "local" }, configured)).toEqual({ url: "http://127.0.0.1:3000" });
    expect(await asked({}, configured)).toEqual({ url: "http://127.0.0.1:4000", apiKey: KEY });
    expect(await asked({}, {}, { file: { queueLimit: 5 } })).toEqual({ url: "http://127.0.0.1:3000" });
    expect(await asked({})).toEqual({ url: "https://relay.example", apiKey: "kept" });
    expect(await asked({}, {}, { kept: { current: null, profiles: {} } })).toEqual({ url: "http://127.0.0.1:3000" });
  });

  it("does not change with unrelated variables", async () => {
    expect(await asked({}, { FENCEPOST_LOG_LEVEL: "warn" })).toEqual({ url: "https://relay.example", apiKey: "kept" });
  });

  // protects [The command line] src/main/remote/node-to-ask.ts
  it("gets the API key of a profile only if it has that profile's URL", async () => {
    expect(await asked({ url: "https://relay.example/" })).toMatchObject({ apiKey: "kept" });
    for (const url of ["https://elsewhere.example", "http://relay.example", "https://relay.example:444"]) {
      expect(await asked({ url })).toEqual({ url });
    }
    expect(await asked({ profile: "production", apiKey: "mine" })).toEqual({
      url: "https://relay.example",
      apiKey: "mine",
    });
  });

  it("is not affected by mistakes in settings that name no node", async () => {
    const broken = { FENCEPOST_RPC_URL: "nonsense", FENCEPOST_PORT: "4000", FENCEPOST_API_KEYS: `ops:${KEY}` };
    expect(await asked({}, broken)).toEqual({ url: "http://127.0.0.1:4000", apiKey: KEY });
  });

  // protects [The command line] src/main/remote/node-to-ask.ts, src/main/config/resolve.ts
  it("must be named by the command if the configuration leaves it open", async () => {
    for (const broken of [{ FENCEPOST_PORT: "many" }, { FENCEPOST_PROT: "4000" }]) {
      await expect(asked({}, broken)).rejects.toThrow(/FENCEPOST_PR?O.*\n.*name the node with --url or --profile$/);
      expect(await asked({ url: "https://relay.example" }, broken)).toMatchObject({ url: "https://relay.example" });
      expect(await asked({ profile: "production" }, broken)).toMatchObject({ apiKey: "kept" });
    }
  });

  it("cannot be chosen if two nodes are given, or an unknown profile", async () => {
    await expect(asked({ url: "http://n", profile: "local" })).rejects.toThrow("both name a node");
    await expect(asked({ profile: "toString" })).rejects.toThrow(
      "there is no profile toString; there are production, local",
    );
  });
});
