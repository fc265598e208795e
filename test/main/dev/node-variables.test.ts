import { expect, it } from "vitest";
import { configFrom } from "../../../src/main/config/load.ts";
import { nodeVariables } from "../../../src/main/dev/dev.ts";

const DATABASE = "postgres://localhost/dev";
const chain = { url: "http://127.0.0.1:8545", chainId: 31_337, accounts: [{ privateKey: `0x${"11".repeat(32)}` }] };

const variablesOf = (variables: Record<string, string>) =>
  nodeVariables(configFrom({ command: "dev", variables, file: null, flags: {} }, "n").config, DATABASE, chain as never);

/**
 * On a terminal, `fencepost dev` runs its node as a separate process: the same command, with its parent's chain and
 * accounts.
 */
it("fencepost dev with its own chain needs no authentication unless an API key is set", () => {
  const open = variablesOf({});
  expect(open).toMatchObject({ FENCEPOST_AUTH: "none", FENCEPOST_RPC_URL: chain.url, FENCEPOST_CHAIN_ID: "31337" });
  expect(() => configFrom({ command: "dev", variables: open, file: null, flags: {} }, "n")).not.toThrow();
  const key = { FENCEPOST_API_KEYS: "me:a-secret-of-mine-and-nobody-else" };
  const closed = { ...key, ...variablesOf(key) };
  expect(closed).not.toHaveProperty("FENCEPOST_AUTH");
  expect(() => configFrom({ command: "dev", variables: closed, file: null, flags: {} }, "n")).not.toThrow();
});
