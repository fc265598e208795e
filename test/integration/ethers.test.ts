/**
 * Real ethers v6 on a real node and chain: contracts, deployments and receipts through the signer of
 * `fencepost/ethers`.
 */

import {
  Contract,
  ContractFactory,
  Interface,
  isError,
  JsonRpcProvider,
  parseEther,
  Signature,
  type TransactionResponse,
  TypedDataEncoder,
  toUtf8Bytes,
  verifyMessage,
  verifyTypedData,
} from "ethers";
import { type Stack, startFencepost } from "fencepost/testing";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { asAddress, createClient } from "../../src/client/index.ts";
import {
  FencepostSigner,
  type FencepostSource,
  type SentResponse,
  waitForFinal,
  withRequestId,
} from "../../src/ethers/index.ts";
import { loseAnswers } from "../support/lost-answers.ts";
import { PERMIT } from "../support/messages.ts";
import { PERMIT_TOKEN_ABI, PERMIT_TOKEN_BYTECODE } from "../support/permit-token.ts";
import { REVERT_DATA, revertingInitCode } from "../support/reverting-contracts.ts";
import { SAMPLE_ABI, SAMPLE_BYTECODE } from "../support/sample-contract.ts";
import { waitUntil } from "../support/wait-until.ts";

const RECIPIENT = "0x00000000000000000000000000000000000000AA";
const SAMPLE = new Interface(SAMPLE_ABI as never);

let stack: Stack;
let provider: JsonRpcProvider;
beforeAll(async () => {
  stack = await startFencepost({ signers: 15 });
  provider = new JsonRpcProvider(stack.rpcUrl, stack.chainId, { staticNetwork: true, cacheTimeout: -1 });
  provider.pollingInterval = 50;
});
afterAll(async () => {
  provider?.destroy();
  await stack?.stop();
});

let used = 0;
/** Each test uses a different signer, so that no test waits for another's transactions. */
function signerOn(client: FencepostSource = stack.client): FencepostSigner {
  return new FencepostSigner(stack.signers[used++] as string, { client, provider });
}

const sentBy = async (signer: FencepostSigner) =>
  (await stack.client.list({ signer: asAddress(signer.address), limit: 100 })).items;
const thrown = (work: Promise<unknown>) =>
  work.then(
    () => null,
    (error: unknown) => error,
  );
const receiptOf = (tx: TransactionResponse) => tx.wait(1, 30_000);

/** Resolves with the hash of the transaction's n-th attempt, once the attempt is in the chain's mempool. */
const onceSent = (txId: string, attempt: number) =>
  waitUntil(async () => {
    const hash = (await stack.client.get(txId)).attempts[attempt]?.txHash;
    return hash && (await stack.chain.rpc("eth_getTransactionByHash", [hash])) ? hash : null;
  }, `attempt ${attempt} is sent`);

async function deployed(signer: FencepostSigner, initial: bigint) {
  const contract = await new ContractFactory(SAMPLE, SAMPLE_BYTECODE, signer).deploy(initial);
  await contract.waitForDeployment();
  return new Contract(await contract.getAddress(), SAMPLE, signer);
}

describe("Fencepost's signer for ethers", () => {
  it("transfers ether, and ethers finds the receipt", async () => {
    const tx = (await signerOn().sendTransaction({ to: RECIPIENT, value: parseEther("1") })) as SentResponse;
    expect(tx).toMatchObject({ nonce: 0, value: parseEther("1"), to: RECIPIENT, blockNumber: null });
    expect(await receiptOf(tx)).toMatchObject({ status: 1, hash: tx.hash });
    expect(await waitForFinal(stack.client, { hash: tx.hash })).toMatchObject({ state: "CONFIRMED", txId: tx.txId });
  });

  it("deploys a contract at the address that ethers predicts", async () => {
    const contract = await deployed(signerOn(), 7n);
    expect(await contract.getFunction("current")()).toBe(7n);
    const tx = (await contract.getFunction("raise")(8n)) as TransactionResponse;
    expect(await receiptOf(tx)).toMatchObject({ status: 1 });
    expect(await contract.getFunction("current")()).toBe(8n);
  });

  it("sends fifty transactions at once, each with its own nonce", async () => {
    const signer = signerOn();
    const sent = await Promise.all(
      Array.from({ length: 50 }, (_, index) => signer.sendTransaction({ to: RECIPIENT, value: index })),
    );
    const receipts = await Promise.all(sent.map(receiptOf));
    expect(receipts.filter((receipt) => receipt?.status === 1)).toHaveLength(50);
    expect(sent.map(({ nonce }) => nonce).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, n) => n));
  });

  // protects [Wallet libraries, and tests of callers] src/wallets/send-through.ts
  it("creates one transaction if the response was lost after the commit", async () => {
    const losing = loseAnswers(2);
    const signer = signerOn(createClient({ url: stack.url, fetch: losing.fetch }));
    await receiptOf(await signer.sendTransaction({ to: RECIPIENT }));
    expect(losing.lost).toBe(2);
    expect(await sentBy(signer)).toHaveLength(1);
    expect(await signer.getNonce("latest")).toBe(1);
  });

  it("creates one transaction for one request id", async () => {
    const signer = signerOn();
    const contract = await deployed(signer, 1n);
    const raise = contract.getFunction("raise");
    const first = (await raise(2n, { customData: { requestId: "order-42" } })) as TransactionResponse;
    const again = (await withRequestId("order-42", () => raise(2n))) as TransactionResponse;
    expect(again.hash).toBe(first.hash);
    await receiptOf(again);
    expect((await sentBy(signer)).filter(({ requestId }) => requestId === "order-42")).toHaveLength(1);
    await expect(raise(3n, { customData: { requestId: "order-42" } })).rejects.toThrow(/REQUEST_ID_REUSED/);
    await expect(raise(3n, { customData: { orderId: "order-42" } })).rejects.toThrow(/requestId, and nothing else/);
  });
});

describe("a message that is signed through ethers", () => {
  it("is a permit with which the spender moves the tokens", async () => {
    const [owner, spender] = [signerOn(), signerOn()];
    const factory = new ContractFactory(PERMIT_TOKEN_ABI as never, PERMIT_TOKEN_BYTECODE, spender);
    const deploying = await factory.deploy(owner.address, 1_000n);
    await deploying.waitForDeployment();
    const token = await deploying.getAddress();
    const domain = { name: "Gold", version: "1", chainId: stack.chainId, verifyingContract: token };
    const types = { Permit: PERMIT.map((field) => ({ ...field })) };
    const prefix = "Log in to the shop";
    const messages = {
      typedData: [{ name: "gold", domain, type: TypedDataEncoder.from(types).encodeType("Permit") }],
      personal: [{ name: "login", prefix, maxLength: 100 }],
    };
    const policies = { signers: { [owner.address]: { messages } } };
    await stack.client.applyPolicies({ policies, reason: "a test" });
    const deadline = 2n ** 256n - 1n;
    const value = { owner: owner.address, spender: spender.address, value: 60n, nonce: 0n, deadline };
    const signature = await owner.signTypedData(domain, types, value);
    expect(verifyTypedData(domain, types, value, signature)).toBe(owner.address);
    const { v, r, s } = Signature.from(signature);
    const contract = new Contract(token, PERMIT_TOKEN_ABI as never, spender);
    const permit = contract.getFunction("permit");
    await receiptOf((await permit(owner.address, spender.address, 60n, deadline, v, r, s)) as TransactionResponse);
    const moved = (await contract.getFunction("transferFrom")(owner.address, RECIPIENT, 60n)) as TransactionResponse;
    expect(await receiptOf(moved)).toMatchObject({ status: 1 });
    expect(await contract.getFunction("balanceOf")(RECIPIENT)).toBe(60n);
    for (const message of [`${prefix}: 8fd2a1`, toUtf8Bytes(`${prefix} – bytes`)])
      expect(verifyMessage(message, await owner.signMessage(message))).toBe(owner.address);
    const alone = owner.connect(null);
    expect(verifyMessage(prefix, await withRequestId("login-1", () => alone.signMessage(prefix)))).toBe(owner.address);
    expect(await alone.signTypedData(domain, types, { ...value, nonce: 1n })).toMatch(/^0x[\da-f]{130}$/);
    const named = alone.signTypedData(domain, types, { ...value, spender: "spender.eth" });
    await expect(named).rejects.toThrow(/spender\.eth is no address/);
  });
});

describe("with ethers, waiting for a transaction that is signed again", () => {
  // protects [Wallet libraries, and tests of callers] src/wallets/attempt-hashes.ts
  it("returns the same transaction after a reprice", async () => {
    const signer = signerOn();
    await stack.chain.pauseMining();
    onTestFinished(() => stack.chain.resumeMining());
    const send = (id: string) => withRequestId(id, () => signer.sendTransaction({ to: RECIPIENT, value: 1n }));
    const [first, second] = [(await send("a")) as SentResponse, (await send("b")) as SentResponse];
    const waiting = [receiptOf(first), thrown(receiptOf(second))] as const;
    await onceSent(first.txId, 0);
    await onceSent(second.txId, 0);
    await stack.client.reprice(first.txId, { reason: "a test" });
    await stack.client.cancel(second.txId, { reason: "a test" });
    const dearer = await onceSent(first.txId, 1);
    await onceSent(second.txId, 1);
    await stack.chain.resumeMining();
    expect(await waiting[0]).toMatchObject({ status: 1, hash: dearer });
    expect(await waiting[1]).toMatchObject({ code: "TRANSACTION_REPLACED", reason: "cancelled" });
    // When the request is repeated after the transaction is final, the hash that was mined is returned.
    await waitForFinal(stack.client, { txId: first.txId });
    expect(await receiptOf(await send("a"))).toMatchObject({ hash: dearer });
  });
});

describe("with ethers, a refusal", () => {
  it("of a reverting call is an ethers error with the revert reason", async () => {
    const signer = signerOn();
    const factory = new ContractFactory([], revertingInitCode(REVERT_DATA.withReason), signer);
    const refusing = await factory.deploy();
    await refusing.waitForDeployment();
    const eat = new Contract(await refusing.getAddress(), ["function eat()"], signer).getFunction("eat");
    const error = await thrown(eat());
    expect(isError(error, "CALL_EXCEPTION") && error.reason).toBe("no lunch");
    expect(await signer.getNonce("latest")).toBe(1);
  });

  it("for insufficient funds is the matching ethers error", async () => {
    const error = await thrown(signerOn().sendTransaction({ to: RECIPIENT, value: parseEther("1000000") }));
    expect(isError(error, "INSUFFICIENT_FUNDS")).toBe(true);
  });

  it("of a nonce other than the next one is the matching ethers error", async () => {
    const signer = signerOn();
    await expect(signer.sendTransaction({ to: RECIPIENT, nonce: 1 })).rejects.toThrow(/nonce too high/);
    expect(await signer.sendTransaction({ to: RECIPIENT, nonce: 0, value: 3n })).toMatchObject({ nonce: 0 });
    const error = await thrown(signer.sendTransaction({ to: RECIPIENT, nonce: 0, value: 4n }));
    expect(isError(error, "NONCE_EXPIRED")).toBe(true);
    expect(await sentBy(signer)).toHaveLength(1);
  });

  it("is the result of a signing request or a wrong `from` account", async () => {
    const signer = signerOn();
    await expect(signer.sendTransaction({ to: RECIPIENT, type: 4 })).rejects.toThrow(/type 0x4/);
    await expect(signer.sendTransaction({ to: RECIPIENT, from: RECIPIENT })).rejects.toThrow(/from mismatch/);
    await expect(signer.sendTransaction({ to: RECIPIENT, chainId: 1 })).rejects.toThrow(/UNKNOWN_CHAIN/);
    await expect(signer.signMessage("hello")).rejects.toMatchObject({ failure: "FORBIDDEN" });
    const unsigned = { ...stack.client, sign: undefined } as never;
    const silent = new FencepostSigner(signer.address, { client: unsigned, provider });
    await expect(silent.signMessage("hello")).rejects.toThrow(/signs no messages/);
    await expect(signer.signTransaction()).rejects.toThrow(/use sendTransaction/);
    await expect(signer.connect(null).sendTransaction({ to: RECIPIENT })).rejects.toThrow(/missing provider/);
    expect(await sentBy(signer)).toEqual([]);
  });
});
