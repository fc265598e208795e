/** Every failure of the library is a FencepostError that names its field as the caller wrote it. */
import { describe, expect } from "vitest";
import {
  asAddress,
  asHex,
  asWei,
  ClosedError,
  ConfigurationError,
  createFencepost,
  FencepostError,
  type FencepostOptions,
  InvalidRequestError,
  UnavailableError,
} from "../../src/index.ts";
import { it, KEYS, RECIPIENT, SIGNER } from "../support/integration.ts";
import { transfer } from "../support/transfers.ts";

const NOWHERE = "http://127.0.0.1:1";
const NO_DATABASE = "postgres://nobody@127.0.0.1:1/none";

/** The error of a start that must fail. It must have every member that the documentation promises. */
async function failureOf(work: () => unknown): Promise<FencepostError> {
  const error = await Promise.resolve()
    .then(work)
    .then(
      () => null,
      (thrown: unknown) => thrown,
    );
  expect(error).toBeInstanceOf(FencepostError);
  const known = error as FencepostError;
  expect(known.code).toMatch(/^[A-Z_]+$/);
  expect(["never", "later", "elsewhere"]).toContain(known.retry);
  expect(known.docs).toMatch(/^fencepost\/docs\/(errors\.md|sdk\.md#errors)$/);
  return known;
}

const start = (options: object) => () => createFencepost(options as FencepostOptions);

describe("createFencepost, if it cannot start,", () => {
  it("reports a database that is down as UNAVAILABLE, to be tried later", async ({ edr }) => {
    const options = { databaseUrl: NO_DATABASE, chains: [{ rpc: edr.url }], signers: KEYS };
    const error = await failureOf(start(options));
    expect(error).toBeInstanceOf(UnavailableError);
    expect(error).toMatchObject({ code: "UNAVAILABLE", retry: "later", cause: expect.any(Error) });
    expect(error.detail).toMatch(/^the database does not answer: .*ECONNREFUSED/);
  });

  it("reports a chain that is down as UNAVAILABLE, to be tried later", async ({ database }) => {
    const options = { databaseUrl: database.url, chains: [{ rpc: NOWHERE }], signers: KEYS };
    const error = await failureOf(start(options));
    expect(error).toMatchObject({ code: "UNAVAILABLE", retry: "later", cause: { name: "ChainUnavailable" } });
  });

  it("reports a key service that is down by its address, and not as the database", async ({ database, edr }) => {
    const options = { databaseUrl: database.url, chains: [{ rpc: edr.url }], remoteSignerUrl: NOWHERE };
    const error = await failureOf(start(options));
    expect(error).toMatchObject({ code: "UNAVAILABLE", retry: "later", cause: { name: "SignerAway" } });
    expect(error.detail).toContain(NOWHERE);
    expect(error.detail).not.toContain("database");
  });

  it("reports a database that does not exist as a mistake in databaseUrl", async ({ database, edr }) => {
    const databaseUrl = Object.assign(new URL(database.url), { pathname: "/no-such-database" }).href;
    const error = await failureOf(start({ databaseUrl, chains: [{ rpc: edr.url }], signers: KEYS }));
    expect(error).toBeInstanceOf(ConfigurationError);
    expect(error).toMatchObject({
      code: "CONFIGURATION",
      retry: "never",
      path: "databaseUrl",
      cause: { code: "3D000" },
    });
  });

  it("reports another chain than the configured one as a mistake", async ({ database, edr }) => {
    const chains = [{ id: 5, rpc: edr.url }];
    const error = await failureOf(start({ databaseUrl: database.url, chains, signers: KEYS }));
    expect(error).toMatchObject({ code: "CONFIGURATION", cause: { name: "WrongChain" } });
  });

  const VALID = { databaseUrl: NO_DATABASE, chains: [{ rpc: NOWHERE }], signers: KEYS };
  it.for<[path: string, options: object, mistake: RegExp]>([
    ["signers[1]", { ...VALID, signers: [KEYS[0], "mykey"] }, /a private key is 64 hex digits/],
    ["signers[0]", { ...VALID, signers: [{ address: SIGNER }] }, /or an account of viem/],
    ["signers[0]", { ...VALID, signers: [`0x${"00".repeat(32)}`] }, /not a key of secp256k1/],
    ["signers", { ...VALID, signers: [] }, /at least one is required, here or by one of .*awsKmsKeyIds/],
    ["signers", { ...VALID, signers: undefined }, /at least one is required/],
    ["awsKmsKeyIds[0]", { ...VALID, awsKmsKeyIds: ["hot key"] }, /is not a key of AWS KMS/],
    ["keystorePasswordFile", { ...VALID, keystoreDir: "keys" }, /is required with keystoreDir/],
    ["leaseRenewInterval", { ...VALID, leaseDuration: "1s", leaseRenewInterval: "1s" }, /is too long for a lease/],
    ["chains[0].rpc", { ...VALID, chains: [{ rpc: "ftp://host" }] }, /begins with http/],
    ["confirmation", { ...VALID, confirmation: 5 }, /did you mean confirmations/],
    ["databaseUrl", { ...VALID, databaseUrl: "mysql://host" }, /is not a PostgreSQL URL/],
    ["databaseUrl", { chains: VALID.chains, signers: KEYS }, /is required/],
    ["maxCostWei", { ...VALID, maxCostWei: "1.5" }, /is not an amount of wei/],
    ["policies", { ...VALID, policies: { signers: { you: {} } } }, /you/],
    ["stuckHook", { ...VALID, stuckHook: "./no-such-hook.js" }, /cannot be loaded/],
  ])("names the option %s as the caller wrote it", async ([path, options, mistake]) => {
    const error = await failureOf(start(options));
    expect(error).toMatchObject({ code: "CONFIGURATION", path, status: 0, cause: { name: "ConfigurationError" } });
    expect(error.mistakes?.[0]).toMatch(mistake);
    expect(error.message).not.toMatch(/FENCEPOST_|privateKeys: |by start/);
  });
});

describe("a running library", () => {
  it("refuses at run time, with the path, what the compiler cannot see", async ({ edr, database }) => {
    const chains = [{ rpc: edr.url }];
    const fencepost = await createFencepost({ databaseUrl: database.url, chains, signers: KEYS });
    const to = RECIPIENT;
    try {
      const planted: readonly [path: string, work: () => unknown][] = [
        ["signer", () => fencepost.send({ signer: "0x12", payload: { to } })],
        ["payload.to", () => fencepost.send({ signer: SIGNER, payload: { to: "0x12" } })],
        // One letter in the wrong case: the checksum (EIP-55) is wrong.
        ["payload.to", () => fencepost.send({ signer: SIGNER, payload: { to: `0xF${SIGNER.slice(3)}` } })],
        ["payload.value", () => fencepost.send({ signer: SIGNER, payload: { to, value: -5n } })],
        ["payload.data", () => fencepost.send({ signer: SIGNER, payload: { to, data: "0x1" } })],
        ["payload.args", () => fencepost.send({ signer: SIGNER, payload: { to, function: "ping()", args: [1] } })],
        ["requestId", () => fencepost.send({ signer: SIGNER, requestId: "", payload: { to } })],
        ["limit", () => fencepost.list({ limit: 0 })],
        ["recipient", () => asAddress("bob", "recipient")],
        ["KEY", () => asHex("mykey", "KEY")],
        ["amount", () => asWei("1.5", "amount")],
      ];
      for (const [path, work] of planted) {
        const error = await failureOf(work);
        expect(error).toBeInstanceOf(InvalidRequestError);
        expect(error).toMatchObject({ code: "INVALID_REQUEST", path, retry: "never" });
      }
    } finally {
      await fencepost.close();
    }
  });

  it("rejects every call after close() with a ClosedError, and passes the caller's abort on", async ({
    edr,
    database,
  }) => {
    const chains = [{ rpc: edr.url }];
    const fencepost = await createFencepost({ databaseUrl: database.url, chains, signers: KEYS });
    const reason = new Error("my own reason");
    const signal = AbortSignal.abort(reason);
    await expect(fencepost.send(transfer(0), { signal })).rejects.toBe(reason);
    await expect(fencepost.list({}, { signal })).rejects.toBe(reason);
    const waiting = failureOf(() => fencepost.waitFor("019a4b7e-0000-7000-8000-000000000001", { pollIntervalMs: 5 }));
    expect(await waiting).toMatchObject({ code: "NOT_FOUND" });
    const blocks = fencepost.blocks({ chainId: 5 });
    expect(await failureOf(() => blocks.next())).toMatchObject({ code: "UNKNOWN_CHAIN" });
    await fencepost.close();
    const calls = [
      () => fencepost.send(transfer(1)),
      () => fencepost.sendMany([transfer(1)]),
      () => fencepost.list(),
      () => fencepost.cancel("019a4b7e-0000-7000-8000-000000000001", { reason: "r" }),
      () => fencepost.signers(),
      () => fencepost.withNonce({ signer: SIGNER }, async () => ({ txHash: "0x" })),
      () => fencepost.blocks().next(),
    ];
    for (const call of calls) expect(await failureOf(call)).toBeInstanceOf(ClosedError);
  });

  it("reports a read that its database cannot answer as UNAVAILABLE", async ({ edr, database }) => {
    const chains = [{ rpc: edr.url }];
    const fencepost = await createFencepost({ databaseUrl: database.url, chains, signers: KEYS });
    try {
      await fencepost.send(transfer(0));
      await database.query("ALTER TABLE fencepost.transaction RENAME TO gone");
      expect(await failureOf(() => fencepost.get("019a4b7e-0000-7000-8000-000000000001"))).toMatchObject({
        code: "UNAVAILABLE",
        retry: "later",
      });
    } finally {
      await database.query("ALTER TABLE IF EXISTS fencepost.gone RENAME TO transaction");
      await fencepost.close();
    }
  });
});
