import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { privateKeyToAccount } from "viem/accounts";
import { describe, expect, it, onTestFinished } from "vitest";
import { openSigner, type SignerSources } from "../../../../../src/adapters/evm/signers/open-signer.ts";
import type { RemoteSignerSource } from "../../../../../src/adapters/evm/signers/remote/web3signer.ts";
import { systemClock } from "../../../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../../../src/domain/lane.ts";
import type { MessageToSign } from "../../../../../src/domain/messages/message.ts";
import type { UnsignedTransaction } from "../../../../../src/domain/transaction/transaction.ts";
import { addressOf, CONTRACT_KEYS, describeSignerContract } from "../../../../contracts/signer.contract.ts";
import * as certificates from "../../../../support/certificates.ts";
import { LIES, MESSAGES } from "../../../../support/messages.ts";
import type { ServiceHandler, ServiceServer } from "../../../../support/service-server.ts";
import { failure } from "../../../../support/signer-away.ts";
import { startWeb3Signer, type Web3SignerOptions } from "../../../../support/web3signer.ts";

const KEY: Hex = `0x${"11".repeat(32)}`;
const ADDRESS = addressOf(KEY);
const CHAIN_ID = 1;
const TRANSFER: UnsignedTransaction = {
  chainId: CHAIN_ID,
  nonce: 7,
  to: `0x${"22".repeat(20)}`,
  data: "0x",
  value: 5n,
  gas: 21_000n,
  fees: { type: "eip1559", maxFeePerGas: 20n, maxPriorityFeePerGas: 1n },
  accessList: [],
};
const [PERSONAL, PERMIT] = MESSAGES as readonly [MessageToSign, MessageToSign];
const PLAIN: Omit<RemoteSignerSource, "url"> = { addresses: null, caFile: null, certFile: null, keyFile: null };

async function serve(options: Partial<Web3SignerOptions> = {}): Promise<ServiceServer> {
  const service = await startWeb3Signer({ keys: [KEY], chainId: CHAIN_ID, ...options });
  onTestFinished(() => service.close());
  return service;
}

async function open(remote: Partial<RemoteSignerSource> & { url: string }, more: SignerSources = {}) {
  const sources = { ...more, remote: { ...PLAIN, ...remote } };
  const signer = await openSigner({ sources, clock: systemClock, environment: {} });
  onTestFinished(() => signer.close());
  return signer;
}

describeSignerContract(
  "remote signer",
  async (keys) => {
    const service = await startWeb3Signer({ keys, chainId: null });
    const sources = { remote: { ...PLAIN, url: service.url } };
    const signer = await openSigner({ sources, clock: systemClock, environment: {} });
    return { ...signer, close: () => Promise.all([signer.close(), service.close()]).then(() => undefined) };
  },
  { runs: 40, accessLists: false },
);

describe("a remote signer (Web3Signer)", () => {
  it("serves all of its accounts, or only the accounts that are configured", async () => {
    const service = await serve({ keys: CONTRACT_KEYS });
    expect((await open(service)).addresses()).toEqual(CONTRACT_KEYS.map(addressOf));
    const wanted = [addressOf(CONTRACT_KEYS[1] as Hex)];
    expect((await open({ url: service.url, addresses: wanted })).addresses()).toEqual(wanted);
    const foreign: Hex = `0x${"99".repeat(20)}`;
    await expect(open({ url: service.url, addresses: [foreign] })).rejects.toThrow(`has no account ${foreign}`);
    service.answer = ({ body }) => ({ body: { jsonrpc: "2.0", id: JSON.parse(body).id, result: [] } });
    await expect(open(service)).rejects.toThrow(/names no account/);
  });

  it("may be used together with local keys, but not for the same account", async () => {
    const service = await serve();
    const other: Hex = `0x${"33".repeat(32)}`;
    const signer = await open(service, { privateKeys: [other] });
    expect(signer.addresses()).toEqual([addressOf(other), ADDRESS]);
    expect(await signer.sign(addressOf(other), [TRANSFER])).toHaveLength(1);
    expect(await signer.sign(ADDRESS, [TRANSFER])).toHaveLength(1);
    await expect(open(service, { privateKeys: [KEY] })).rejects.toThrow(
      `${ADDRESS}: is configured in two signer sources`,
    );
  });

  it("gets requests in the format of the Web3Signer protocol", async () => {
    const service = await serve();
    await (await open(service)).sign(ADDRESS, [TRANSFER]);
    expect(JSON.parse(service.requests.at(-1)?.body ?? "")).toMatchObject({
      jsonrpc: "2.0",
      method: "eth_signTransaction",
      params: [
        {
          from: ADDRESS,
          to: TRANSFER.to,
          data: "0x",
          value: "0x5",
          gas: "0x5208",
          nonce: "0x7",
          chainId: "0x1",
          type: "0x2",
          maxFeePerGas: "0x14",
          maxPriorityFeePerGas: "0x1",
        },
      ],
    });
  });

  it.each<[string, Partial<UnsignedTransaction>, string]>([
    ["to another receiver", { to: `0x${"66".repeat(20)}` }, "to differs"],
    ["for more value", { value: 6n }, "value differs"],
    ["at another nonce", { nonce: 8 }, "nonce differs"],
    ["with other data", { data: "0xdeadbeef" }, "data differs"],
    ["with more gas", { gas: 30_000n }, "gas differs"],
    ["for a higher fee", { fees: { type: "eip1559", maxFeePerGas: 21n, maxPriorityFeePerGas: 1n } }, "fees differs"],
    ["for another chain", { chainId: 10 }, "chainId differs"],
    // protects [Signers] src/adapters/evm/signers/remote/web3signer.ts
  ])("is reported as dishonest if it signs a transaction %s", async (_, change, words) => {
    const service = await serve();
    const signer = await open(service);
    const { fees, to, accessList: _list, ...content } = { ...TRANSFER, ...change };
    const forged = await privateKeyToAccount(KEY).signTransaction({
      ...content,
      ...fees,
      ...(to ? { to } : {}),
    } as never);
    service.answer = ({ body }) => ({ body: { jsonrpc: "2.0", id: JSON.parse(body).id, result: forged } });
    const refused = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(refused).toMatchObject({ lies: true, signed: [] });
    expect(refused.message).toContain(`signed another transaction than it was asked to: ${words}`);
  });

  // protects [Signers] src/adapters/evm/signers/remote/web3signer.ts
  it("is reported as dishonest if it is configured for another chain id", async () => {
    const signer = await open(await serve({ chainId: 5 }));
    const refused = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(refused).toMatchObject({ lies: true, message: expect.stringContaining("chainId differs") });
  });

  // protects [Signers] src/adapters/evm/signers/remote/web3signer.ts
  it("is reported as dishonest if it drops the access list", async () => {
    const signer = await open(await serve());
    const listed = { ...TRANSFER, accessList: [{ address: ADDRESS, storageKeys: [] }] };
    const refused = await failure(signer.sign(ADDRESS, [listed]));
    expect(refused).toMatchObject({ lies: true, message: expect.stringContaining("accessList differs") });
  });

  it.each<[string, Hex, (raw: Hex) => Hex, RegExp]>([
    ["of another key", `0x${"44".repeat(32)}`, (raw) => raw, /another key than that of/],
    ["with a high s", KEY, withHighS, /no node takes/],
    // protects [Signers] src/adapters/evm/signers/remote/key-service.ts
  ])("is reported as dishonest if it returns a signature %s", async (_, key, change, words) => {
    const service = await serve();
    const signer = await open(service);
    const { fees, to, accessList: _list, ...content } = TRANSFER;
    const raw = await privateKeyToAccount(key).signTransaction({ ...content, ...fees, to: to as Hex } as never);
    service.answer = ({ body }) => ({ body: { jsonrpc: "2.0", id: JSON.parse(body).id, result: change(raw) } });
    const refused = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(refused.lies).toBe(true);
    expect(refused.message).toMatch(words);
  });

  it.each<[string, unknown]>([
    ["null", null],
    ["a number", 7],
    ["text", "0xsigned"],
    ["no transaction", "0x02f8"],
    ["nothing", "0x"],
  ])("is reported as dishonest if it answers %s", async (_, result) => {
    const service = await serve();
    const signer = await open(service);
    service.answer = ({ body }) => ({ body: { jsonrpc: "2.0", id: JSON.parse(body).id, result } });
    expect(await failure(signer.sign(ADDRESS, [TRANSFER]))).toMatchObject({ lies: true, signed: [] });
  });

  it.each<[string, ServiceHandler, RegExp]>([
    ["refuses", refusing(-32000, "No unlocked account matches the Sender"), /No unlocked account/],
    ["fails", () => ({ status: 503, body: "" }), /HTTP 503/],
    ["limits the rate", () => ({ status: 429, body: "" }), /limits the rate/],
    ["redirects", () => ({ status: 307, headers: { location: "http://127.0.0.1:1" }, body: "" }), /not JSON/],
    ["answers with text that is not JSON", () => ({ body: "<html>" }), /not JSON/],
  ])("is temporarily unavailable, not dishonest, if it %s", async (_, answer, words) => {
    const service = await serve();
    const signer = await open(service);
    service.answer = answer;
    const away = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(away.lies).toBe(false);
    expect(away.message).toMatch(words);
    service.answer = null;
    expect(await signer.sign(ADDRESS, [TRANSFER])).toHaveLength(1);
  });

  // protects [Signers] src/application/stages/3-sign/sign.ts, src/adapters/evm/signers/remote/key-service.ts
  it("loses none of a batch's earlier signatures if it fails in the middle of the batch", async () => {
    const service = await serve();
    const signer = await open(service);
    const batch = Array.from({ length: 40 }, (_, nonce) => ({ ...TRANSFER, nonce }));
    const whole = await signer.sign(ADDRESS, batch);
    const sign = await startWeb3Signer({ keys: [KEY], chainId: CHAIN_ID });
    onTestFinished(() => sign.close());
    service.answer = async ({ body }) => {
      const { id, params } = JSON.parse(body);
      if (params[0].nonce === "0x14") return { status: 500, body: "" };
      const answer = await fetch(sign.url, { method: "POST", body });
      return { body: { ...((await answer.json()) as object), id } };
    };
    const away = await failure(signer.sign(ADDRESS, batch));
    expect(away.signed).toEqual(whole.slice(0, 20));
  });

  it("gets messages in the format of the Web3Signer protocol", async () => {
    const service = await serve();
    const signer = await open(service);
    await signer.signMessages(ADDRESS, [PERSONAL]);
    await signer.signMessages(ADDRESS, [PERMIT]);
    const [first, second] = service.requests.slice(-2).map(({ body }) => JSON.parse(body));
    expect(first).toMatchObject({ method: "eth_sign", params: [ADDRESS, Object(PERSONAL.message).bytes] });
    expect(second).toMatchObject({ method: "eth_signTypedData", params: [ADDRESS, expect.any(String)] });
    const { types, domain, primaryType, message } = JSON.parse(second.params[1]);
    expect(types.EIP712Domain.map(({ name }: { name: string }) => name)).toEqual(Object.keys(domain));
    expect({ domain, primaryType, message }).toMatchObject({
      domain: { name: "Gold", chainId: 1 },
      primaryType: "Permit",
      message: { value: "1000" },
    });
  });

  // protects [Signers] src/adapters/evm/signers/recovery.ts, src/adapters/evm/signers/remote/web3signer.ts
  it.each(LIES)("is reported as dishonest if it answers a message with a signature %s", async (_, lie, words) => {
    const service = await serve();
    const signer = await open(service);
    for (const asked of [PERSONAL, PERMIT]) {
      const result = await lie(KEY, asked);
      service.answer = ({ body }) => ({ body: { jsonrpc: "2.0", id: JSON.parse(body).id, result } });
      const refused = await failure(signer.signMessages(ADDRESS, [asked]));
      expect(refused).toMatchObject({ lies: true, message: expect.stringMatching(words) });
    }
  });

  it("is temporarily unavailable, not dishonest, if it refuses a message", async () => {
    const service = await serve();
    const signer = await open(service);
    service.answer = refusing(-32601, "Method not found");
    const away = await failure(signer.signMessages(ADDRESS, [PERMIT]));
    expect(away).toMatchObject({ lies: false, message: expect.stringMatching(/refused eth_signTypedData/) });
  });

  // protects [Signers] src/adapters/evm/rpc/http.ts
  it("is named only by its host in errors", async () => {
    const service = await startWeb3Signer({ keys: [KEY], chainId: CHAIN_ID });
    const { host } = new URL(service.url);
    const signer = await open({ url: `http://user:hunter2@${host}/token-of-forty-characters-in-the-path` });
    await service.close();
    const { message } = await failure(signer.sign(ADDRESS, [TRANSFER]));
    expect(message).toMatch(new RegExp(`^http://${host} is not reachable \\([A-Z_]+\\)$`));
  });
});

describe("mTLS to a remote signer", () => {
  async function files() {
    const folder = await mkdtemp(join(tmpdir(), "fencepost-tls-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const write = async (name: string, text: string) => {
      await writeFile(join(folder, name), text, { mode: 0o600 });
      return join(folder, name);
    };
    return {
      caFile: await write("ca.pem", certificates.AUTHORITY),
      certFile: await write("client.pem", certificates.CLIENT_CERTIFICATE),
      keyFile: await write("client.key", certificates.CLIENT_KEY),
    };
  }
  const tls = {
    ca: certificates.AUTHORITY,
    cert: certificates.SERVER_CERTIFICATE,
    key: certificates.SERVER_KEY,
    requestCert: true,
    rejectUnauthorized: true,
  };

  it("uses the configured certificate and authority", async () => {
    const { url } = await serve({ tls });
    const signer = await open({ url, ...(await files()) });
    expect(await signer.sign(ADDRESS, [TRANSFER])).toHaveLength(1);
  });

  // protects [Signers] src/adapters/evm/signers/remote/web3signer.ts, src/adapters/evm/rpc/http.ts
  it("fails without a client certificate", async () => {
    const { url } = await serve({ tls });
    const { caFile, certFile, keyFile } = await files();
    await expect(open({ url, certFile, keyFile })).rejects.toThrow(/not reachable/);
    await expect(open({ url, caFile })).rejects.toThrow(/not reachable/);
    await expect(open({ url, caFile: `${caFile}.none` })).rejects.toThrow(/cannot be read \(ENOENT\)/);
  });
});

function refusing(code: number, message: string): ServiceHandler {
  return ({ body }) => ({ status: 400, body: { jsonrpc: "2.0", id: JSON.parse(body).id, error: { code, message } } });
}

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/**
 * The other valid signature of the same payload: n − s, with the other parity. The last 33 bytes of the transaction are
 * the length and the value of s.
 */
function withHighS(raw: Hex): Hex {
  const s = BigInt(`0x${raw.slice(-64)}`);
  const parityAt = raw.length - 64 - 2 - 64 - 2 - 2;
  const flipped = raw.slice(parityAt, parityAt + 2) === "01" ? "80" : "01";
  return `${raw.slice(0, parityAt)}${flipped}${raw.slice(parityAt + 2, -64)}${(ORDER - s).toString(16)}` as Hex;
}
