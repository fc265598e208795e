/** Real viem on a real node and chain: what `fencepost/viem` changes and what it leaves unchanged. */
import { type Stack, startFencepost } from "fencepost/testing";
import {
  type BaseError,
  ContractFunctionRevertedError,
  createWalletClient,
  defineChain,
  encodeErrorResult,
  http,
  InsufficientFundsError,
  NonceTooHighError,
  NonceTooLowError,
  parseAbi,
  parseEther,
  parseSignature,
  publicActions,
  stringToHex,
  TransactionExecutionError,
} from "viem";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { createClient } from "../../src/client/index.ts";
import {
  FencepostSendError,
  type FencepostSource,
  fencepost,
  toFencepostAccount,
  waitForFinal,
  withRequestId,
} from "../../src/viem/index.ts";
import { loseAnswers } from "../support/lost-answers.ts";
import { PERMIT } from "../support/messages.ts";
import { PERMIT_TOKEN_ABI, PERMIT_TOKEN_BYTECODE } from "../support/permit-token.ts";
import { REVERT_DATA, revertingInitCode } from "../support/reverting-contracts.ts";
import { SAMPLE_ABI, SAMPLE_BYTECODE } from "../support/sample-contract.ts";
import { waitUntil } from "../support/wait-until.ts";

const RECIPIENT = "0x00000000000000000000000000000000000000AA";

let stack: Stack;
beforeAll(async () => {
  stack = await startFencepost({ signers: 24 });
});
afterAll(() => stack?.stop());

let used = 0;
/** Each test uses a different signer, so that no test waits for another's transactions. */
function wallet(client: FencepostSource = stack.client, timeoutMs?: number) {
  const account = stack.signers[used++] as `0x${string}`;
  const chain = defineChain({
    id: stack.chainId,
    name: "test",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [stack.rpcUrl] } },
  });
  const transport = fencepost({ client, rpc: http(stack.rpcUrl), ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  return createWalletClient({ account, chain, transport, pollingInterval: 50 }).extend(publicActions);
}

const PERMIT_TYPE = "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)";

/** Puts rules for messages of one more signer in force. */
async function allow(signer: string, messages: object) {
  const { policies } = await stack.client.policies();
  const signers = { ...Object(policies?.signers), [signer]: { messages } };
  await stack.client.applyPolicies({ policies: { ...policies, signers }, reason: "a test" });
}

const nonceOf = (address: string) => stack.chain.rpc("eth_getTransactionCount", [address, "latest"]).then(Number);
const sentBy = async (signer: `0x${string}`) => (await stack.client.list({ signer, limit: 100 })).items;

/** Resolves with the hash of the transaction's n-th attempt, once the attempt is in the chain's mempool. */
const onceSent = (txId: string, attempt: number) =>
  waitUntil(async () => {
    const hash = (await stack.client.get(txId)).attempts[attempt]?.txHash;
    return hash && (await stack.chain.rpc("eth_getTransactionByHash", [hash])) ? hash : null;
  }, `attempt ${attempt} is sent`);

/** Sends a transaction, reprices it while no block is mined, and returns both hashes. */
async function repriced(client: ReturnType<typeof wallet>) {
  await stack.chain.pauseMining();
  onTestFinished(() => stack.chain.resumeMining());
  const hash = await client.sendTransaction({ to: RECIPIENT, value: 1n });
  const [sent] = await sentBy(client.account.address);
  const { txId } = sent as { txId: string };
  await onceSent(txId, 0);
  await stack.client.reprice(txId, { reason: "a test" });
  return { hash, txId, dearer: await onceSent(txId, 1) };
}

describe("a viem wallet client with Fencepost's transport", () => {
  it("transfers ether, and viem finds the receipt", async () => {
    const client = wallet();
    const hash = await client.sendTransaction({ to: RECIPIENT, value: parseEther("1") });
    const receipt = await client.waitForTransactionReceipt({ hash });
    expect(receipt).toMatchObject({ status: "success", transactionHash: hash });
    expect((await client.getTransaction({ hash })).value).toBe(parseEther("1"));
    expect(await waitForFinal(stack.client, { hash })).toMatchObject({ state: "CONFIRMED", txHash: hash });
    expect(await client.getAddresses()).toEqual([client.account.address]);
  });

  it("works with an account from toFencepostAccount", async () => {
    const address = stack.signers[used++] as `0x${string}`;
    const account = toFencepostAccount({ address, client: stack.client, rpc: http(stack.rpcUrl) });
    const { chain } = wallet();
    const client = createWalletClient({ account, chain, transport: account.transport, pollingInterval: 50 }).extend(
      publicActions,
    );
    const deployed = await client.deployContract({ abi: SAMPLE_ABI, bytecode: SAMPLE_BYTECODE, args: [7n] });
    const { contractAddress, from } = await client.waitForTransactionReceipt({ hash: deployed });
    expect(from.toLowerCase()).toBe(address.toLowerCase());
    const contract = { address: contractAddress as `0x${string}`, abi: SAMPLE_ABI } as const;
    expect(await client.readContract({ ...contract, functionName: "current" })).toBe(7n);
    const sent = await withRequestId("by-account", () => client.sendTransaction({ to: RECIPIENT, value: 1n }));
    expect(await waitForFinal(stack.client, { hash: sent })).toMatchObject({ requestId: "by-account", nonce: 1 });
  });

  it("deploys a contract, writes to it and reads it", async () => {
    const client = wallet();
    const deployed = await client.deployContract({ abi: SAMPLE_ABI, bytecode: SAMPLE_BYTECODE, args: [7n] });
    const { contractAddress } = await client.waitForTransactionReceipt({ hash: deployed });
    const contract = { address: contractAddress as `0x${string}`, abi: SAMPLE_ABI } as const;
    expect(await client.readContract({ ...contract, functionName: "current" })).toBe(7n);
    const hash = await client.writeContract({ ...contract, functionName: "raise", args: [8n] });
    expect(await client.waitForTransactionReceipt({ hash })).toMatchObject({ status: "success" });
    expect(await client.readContract({ ...contract, functionName: "current" })).toBe(8n);
  });

  it("sends fifty transactions at once, each with its own nonce", async () => {
    const client = wallet();
    const hashes = await Promise.all(
      Array.from({ length: 50 }, (_, index) => client.sendTransaction({ to: RECIPIENT, value: BigInt(index) })),
    );
    const receipts = await Promise.all(hashes.map((hash) => client.waitForTransactionReceipt({ hash })));
    expect(receipts.filter(({ status }) => status === "success")).toHaveLength(50);
    expect(new Set(hashes)).toHaveProperty("size", 50);
    expect(await nonceOf(client.account.address)).toBe(50);
  });

  // protects [Wallet libraries, and tests of callers] src/wallets/send-through.ts
  it("creates one transaction if the response was lost after the commit", async () => {
    const losing = loseAnswers(2);
    const client = wallet(createClient({ url: stack.url, fetch: losing.fetch }));
    const hash = await client.sendTransaction({ to: RECIPIENT, value: 1n });
    await client.waitForTransactionReceipt({ hash });
    expect(losing.lost).toBe(2);
    expect(await sentBy(client.account.address)).toHaveLength(1);
    expect(await nonceOf(client.account.address)).toBe(1);
  });

  it("creates one transaction for one request id", async () => {
    const client = wallet();
    const send = () => client.sendTransaction({ to: RECIPIENT, value: 5n });
    const [first, second] = await Promise.all([withRequestId("order-42", send), withRequestId("order-42", send)]);
    expect(second).toBe(first);
    expect(await sentBy(client.account.address)).toMatchObject([{ requestId: "order-42", txHash: first }]);
    const other = withRequestId("order-42", () => client.sendTransaction({ to: RECIPIENT, value: 6n }));
    await expect(other).rejects.toThrow(/REQUEST_ID_REUSED/);
    expect(await client.sendTransaction({ to: RECIPIENT, value: 5n })).not.toBe(first);
  });
});

describe("with viem, a transaction that Fencepost reprices", () => {
  it("is found under its new hash by a waiting caller", async () => {
    const client = wallet();
    const { hash, dearer } = await repriced(client);
    expect(await client.getTransaction({ hash })).toMatchObject({ hash, blockNumber: null, value: 1n, nonce: 0 });
    const waiting = client.waitForTransactionReceipt({ hash });
    await stack.chain.resumeMining();
    expect(await waiting).toMatchObject({ status: "success", transactionHash: dearer });
    // The receipt is found several blocks later, although viem itself reads only the newest block.
    expect(await waitForFinal(stack.client, { hash })).toMatchObject({ state: "CONFIRMED", txHash: dearer });
    expect(await client.waitForTransactionReceipt({ hash })).toMatchObject({ transactionHash: dearer });
  });

  // protects [Wallet libraries, and tests of callers] src/wallets/attempt-hashes.ts
  it("is found by viem's own search for replacements", async () => {
    const client = wallet();
    const { hash, dearer } = await repriced(client);
    const { list } = stack.client;
    const silent: FencepostSource = {
      ...stack.client,
      list: async (query) => ({ items: (await list(query)).items.map((item) => ({ ...item, receipt: null })) }),
    };
    const transport = fencepost({ client: silent, rpc: http(stack.rpcUrl) });
    const reader = createWalletClient({ transport, pollingInterval: 20 }).extend(publicActions);
    let reason: string | undefined;
    const waiting = reader.waitForTransactionReceipt({ hash, onReplaced: (replaced) => (reason = replaced.reason) });
    await stack.chain.mine();
    expect(await waiting).toMatchObject({ status: "success", transactionHash: dearer });
    expect(reason).toBe("repriced");
  });

  // protects [Wallet libraries, and tests of callers] src/wallets/attempt-hashes.ts
  it("is reported as cancelled after a cancel", async () => {
    const client = wallet();
    const { hash, txId } = await repriced(client);
    await stack.client.cancel(txId, { reason: "a test" });
    await onceSent(txId, 2);
    let reason: string | undefined;
    const waiting = client.waitForTransactionReceipt({ hash, onReplaced: (replaced) => (reason = replaced.reason) });
    await stack.chain.mine();
    await waiting;
    expect(reason).toBe("cancelled");
    await expect(client.getTransactionReceipt({ hash })).rejects.toThrow(/could not be found/);
  });
});

describe("a message that is signed through viem", () => {
  async function tokenOf(owner: `0x${string}`) {
    const deployer = wallet();
    const hash = await deployer.deployContract({
      abi: PERMIT_TOKEN_ABI,
      bytecode: PERMIT_TOKEN_BYTECODE,
      args: [owner, 1_000n],
    });
    return (await deployer.waitForTransactionReceipt({ hash })).contractAddress as `0x${string}`;
  }

  it("is a permit with which the spender moves the tokens, once", async () => {
    const [owner, spender] = [wallet(), wallet()];
    const token = await tokenOf(owner.account.address);
    const spenders = { in: [spender.account.address] };
    await allow(owner.account.address, {
      typedData: [
        {
          ...{ name: "gold", type: PERMIT_TYPE, fields: { spender: spenders, deadline: { withinSeconds: 3_600 } } },
          domain: { name: "Gold", version: "1", chainId: stack.chainId, verifyingContract: token },
          amount: { field: "value", perSignature: "100" },
        },
      ],
    });
    const message = {
      ...{ owner: owner.account.address, spender: spender.account.address, value: 60n, nonce: 0n },
      deadline: BigInt(Math.floor(Date.now() / 1_000) + 600),
    };
    const domain = { name: "Gold", version: "1", chainId: stack.chainId, verifyingContract: token } as const;
    const asked = { domain, types: { Permit: PERMIT }, primaryType: "Permit", message } as const;
    const sign = () => withRequestId("permit-1", () => owner.signTypedData(asked));
    const signature = await sign();
    expect(await sign(), "a repeat is the same signature").toBe(signature);
    expect(await owner.verifyTypedData({ ...asked, address: message.owner, signature })).toBe(true);
    const { r, s, v } = parseSignature(signature);
    const contract = { address: token, abi: PERMIT_TOKEN_ABI } as const;
    const permitted = await spender.writeContract({
      ...{ ...contract, functionName: "permit" },
      args: [message.owner, message.spender, message.value, message.deadline, Number(v), r, s],
    });
    expect(await spender.waitForTransactionReceipt({ hash: permitted })).toMatchObject({ status: "success" });
    const args = [message.owner, RECIPIENT, 60n] as const;
    const moved = await spender.writeContract({ ...contract, functionName: "transferFrom", args });
    expect(await spender.waitForTransactionReceipt({ hash: moved })).toMatchObject({ status: "success" });
    expect(await owner.readContract({ ...contract, functionName: "balanceOf", args: [RECIPIENT] })).toBe(60n);
    const above = owner.signTypedData({ ...asked, message: { ...message, nonce: 1n, value: 101n } });
    await expect(above).rejects.toThrow(/messages\.gold\.amount\.perSignature|above 100/);
  });

  it("is a personal message, which viem verifies", async () => {
    const client = wallet();
    const { address } = client.account;
    await allow(address, { personal: [{ name: "login", prefix: "Log in to the shop", maxLength: 100 }] });
    const message = "Log in to the shop: 8fd2a1 – ja";
    const signature = await client.signMessage({ message });
    expect(await client.verifyMessage({ address, message, signature })).toBe(true);
    const raw = stringToHex(message);
    expect(await client.signMessage({ message: { raw } })).toBe(signature);
    const { items } = await stack.client.signatures({ signer: address });
    expect(items).toMatchObject([
      { message, rule: "login" },
      { message, rule: "login" },
    ]);
  });

  it("is one signature if the response was lost after the commit", async () => {
    const losing = loseAnswers(2);
    const client = wallet(createClient({ url: stack.url, fetch: losing.fetch }));
    const { address } = client.account;
    await allow(address, { personal: [{ name: "login", prefix: "Log in to the shop", maxLength: 100 }] });
    const signature = await client.signMessage({ message: "Log in to the shop" });
    expect(await client.verifyMessage({ address, message: "Log in to the shop", signature })).toBe(true);
    expect(losing.lost).toBe(2);
    expect((await stack.client.signatures({ signer: address })).items).toHaveLength(1);
  });

  it("that waits for approval is signed when the request is repeated after it", async () => {
    const client = wallet();
    const { address } = client.account;
    const requireApproval = { expiresAfter: "1h" };
    const prefix = "Log in to the shop";
    await allow(address, { personal: [{ name: "login", prefix, maxLength: 100, requireApproval }] });
    const sign = () => withRequestId("login-1", () => client.signMessage({ message: prefix }));
    await expect(sign()).rejects.toThrow(/waits for approval: sign it again with the request id login-1/);
    const [waiting] = (await stack.client.signatures({ signer: address })).items;
    await stack.client.approveSignature(String(waiting?.signatureId), { reason: "a test" });
    expect(await client.verifyMessage({ address, message: prefix, signature: await sign() })).toBe(true);
  });
});

describe("with viem, a refusal", () => {
  it("of a reverting call has the decoded revert reason", async () => {
    const client = wallet();
    const abi = parseAbi(["function eat()", "error Full(uint256 plates)"]);
    const deploy = async (data: string) => {
      const hash = await client.deployContract({ abi, bytecode: revertingInitCode(data) });
      return (await client.waitForTransactionReceipt({ hash })).contractAddress as `0x${string}`;
    };
    const eat = async (address: `0x${string}`) => {
      const error = await client
        .writeContract({ address, abi, functionName: "eat" })
        .catch((thrown: unknown) => thrown);
      return (error as BaseError).walk((each) => each instanceof ContractFunctionRevertedError);
    };
    expect(await eat(await deploy(REVERT_DATA.withReason))).toMatchObject({ reason: "no lunch" });
    const full = encodeErrorResult({ abi, errorName: "Full", args: [42n] }).slice(2);
    const custom = await eat(await deploy(full));
    expect(custom).toMatchObject({ data: { errorName: "Full", args: [42n] } });
    expect(await nonceOf(client.account.address)).toBe(2);
  });

  it("for insufficient funds or an unknown account is the matching viem error", async () => {
    const client = wallet();
    const rich = client.sendTransaction({ to: RECIPIENT, value: parseEther("1000000") });
    const error = (await rich.catch((thrown: unknown) => thrown)) as BaseError;
    expect(error).toBeInstanceOf(TransactionExecutionError);
    expect(error.walk((each) => each instanceof InsufficientFundsError)).not.toBeNull();
    const strange = client.sendTransaction({ account: stack.strangers[0]?.address as `0x${string}`, to: RECIPIENT });
    await expect(strange).rejects.toThrow(/UNKNOWN_SIGNER/);
  });

  it("of a nonce other than the next one is the matching viem error", async () => {
    const client = wallet();
    const high = client.sendTransaction({ to: RECIPIENT, nonce: 1 }).catch((thrown: BaseError) => thrown);
    expect(((await high) as BaseError).walk((each) => each instanceof NonceTooHighError)).toBeInstanceOf(
      NonceTooHighError,
    );
    const request = await client.prepareTransactionRequest({ to: RECIPIENT, value: 3n });
    expect(request.nonce).toBe(0);
    const hash = await client.sendTransaction(request);
    expect(await client.getTransaction({ hash })).toMatchObject({ nonce: 0, value: 3n });
    const low = client.sendTransaction({ to: RECIPIENT, nonce: 0, value: 4n }).catch((thrown: BaseError) => thrown);
    expect(((await low) as BaseError).walk((each) => each instanceof NonceTooLowError)).toBeInstanceOf(
      NonceTooLowError,
    );
    expect(await sentBy(client.account.address)).toHaveLength(1);
  });

  it("is the result of a request to sign what no rule allows, or by another method", async () => {
    const client = wallet();
    const refused = (signing: Promise<unknown>) => signing.catch((thrown: FencepostSendError) => thrown);
    const personal = await refused(client.signMessage({ message: "hello" }));
    expect(personal).toMatchObject({ failure: "FORBIDDEN", code: 4100, message: expect.stringMatching(/no rule of/) });
    const types = { A: [{ name: "a", type: "uint8" }] };
    const typed = client.signTypedData({ domain: { name: "A" }, types, primaryType: "A", message: { a: 1 } });
    expect(await refused(typed)).toMatchObject({ name: "FencepostSendError", failure: "FORBIDDEN" });
    const request = client.request as (call: { method: string; params: readonly unknown[] }) => Promise<unknown>;
    const others = ["eth_sign", "eth_signTypedData", "eth_signTypedData_v3", "eth_signTransaction"];
    for (const method of others)
      await expect(request({ method, params: [client.account.address, "0x00"] })).rejects.toThrow(/Fencepost signs/);
    const blob = client.sendTransaction({ to: RECIPIENT, maxFeePerBlobGas: 1n, blobs: ["0x00"] });
    await expect(blob).rejects.toThrow(/no transactions with blobs, maxFeePerBlobGas/);
    expect(await sentBy(client.account.address)).toEqual([]);
  });

  // protects [Wallet libraries, and tests of callers] src/wallets/send-through.ts
  it("at the timeout contains the transaction's id if it was accepted but is not signed yet", async () => {
    const client = wallet(stack.client, 300);
    const signer = client.account.address;
    await stack.client.suspend(signer, { reason: "a test" });
    const failed = (await client.sendTransaction({ to: RECIPIENT }).catch((thrown: unknown) => thrown)) as BaseError;
    const error = failed.walk((each) => each instanceof FencepostSendError) as FencepostSendError;
    expect(error).toMatchObject({ message: expect.stringMatching(/accepted as .*, not signed yet/), code: -32003 });
    expect(await client.getTransactionCount({ address: signer, blockTag: "pending" })).toBe(1);
    expect(await client.getTransactionCount({ address: signer })).toBe(0);
    await stack.client.resume(signer, { reason: "a test" });
    const outcome = await waitForFinal(stack.client, { txId: error.txId as string });
    expect(outcome).toMatchObject({ state: "CONFIRMED", requestId: error.requestId });
  });
});
