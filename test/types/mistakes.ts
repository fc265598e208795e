/**
 * Mistakes with the library and the SDK that must not compile. Each is marked as an expected error; the compiler
 * reports a marked line that has no error. The comment under it is its correct twin. `types.test.ts` runs the real
 * compiler on this file, and on a copy with every twin in the place of its mistake.
 */
import { privateKeyToAccount } from "viem/accounts";
import {
  asAddress,
  asHex,
  asWei,
  type ClientOptions,
  createClient,
  type FencepostClient,
} from "../../src/client/index.ts";
import { createFencepost, type Fencepost, type FencepostOptions, type StuckDecision } from "../../src/index.ts";
import { defineConfig } from "../../src/main/config/define.ts";

declare const sdk: FencepostClient;
declare const library: Fencepost;
declare const options: FencepostOptions;

const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const to = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const txId = "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d";
const key = `0x${"01".repeat(32)}` as const;
const fromOutside: string = JSON.parse('"text"');

const erc20 = [
  {
    type: "function",
    name: "transfer",
    stateMutability: "nonpayable",
    inputs: [
      { name: "to", type: "address" },
      { name: "amount", type: "uint256" },
    ],
    outputs: [{ type: "bool" }],
  },
  { type: "function", name: "balanceOf", stateMutability: "view", inputs: [{ type: "address" }], outputs: [] },
  { type: "function", name: "deposit", stateMutability: "payable", inputs: [], outputs: [] },
  { type: "constructor", stateMutability: "nonpayable", inputs: [{ name: "supply", type: "uint256" }] },
] as const;

/** Correct uses, all of which must compile. */
export function right(): unknown[] {
  const loaded = JSON.parse("[]") as unknown[];
  return [sdk, library].flatMap((face) => [
    face.send({ signer, payload: { to, value: 1n } }),
    face.send({ signer, chainId: 1, requestId: "r", metadata: { a: 1 }, payload: { to, data: "0x", gas: 21_000 } }),
    face.send({ signer, payload: { to, function: "transfer(address,uint256)", args: [to, "1"] } }),
    face.send({ signer, payload: { to, function: fromOutside, args: [to, "1"] } }),
    face.send({
      signer,
      payload: { to, function: "pay((address to, uint256[2] x)[] all) payable", args: [[]], value: 1n },
    }),
    face.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } }),
    face.send({ signer, payload: { to, abi: erc20, function: "transfer(address,uint256)", args: [to, "1"] } }),
    face.send({ signer, payload: { to, abi: erc20, function: "deposit()", args: [], value: 1n } }),
    face.send({ signer, payload: { to, abi: loaded, function: "anything", args: [1], value: 1n } }),
    face.send({ signer, payload: { to, abi: ["function ping()"], function: "ping", args: [] } }),
    face.send({ signer, payload: { bytecode: "0x00" } }),
    face.send({ signer, payload: { to }, validUntil: new Date() }),
    face.send({ signer, payload: { to }, validUntil: "2026-11-02T09:45:00Z", allowNoCode: true }),
    face.send({ signer, payload: { bytecode: "0x00", abi: erc20, args: [1n] } }),
    face.send({ signer: { pool: "payouts", stickyKey: "k" }, payload: { to, value: "0x10" } }),
    face.sendMany([{ signer, payload: { to } }], { timeoutMs: 5 }),
    face.replace(txId, { reason: "r", payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } }),
    face.resolve(txId, { reason: "r", action: "CANCEL" }),
    face.list({ signer, state: "STUCK", limit: 10 }, { signal: new AbortController().signal }),
  ]);
}

/** Texts from outside, after their check, and every kind of signer. */
export async function checked(): Promise<void> {
  const payload = { to: asAddress(fromOutside, "to"), value: asWei(fromOutside), data: asHex(fromOutside) };
  await sdk.send({ signer: asAddress(fromOutside), payload });
  await createFencepost({ ...options, signers: [key, privateKeyToAccount(key), asHex(fromOutside, "KEY")] });
  await createFencepost({ ...options, awsKmsKeyIds: ["alias/hot"], mnemonic: "test test", keystoreDir: "keys" });
}

/** viem accepts the values of responses: hashes and addresses have the type `0x…`. A value can be sent again as it is. */
export async function answered(): Promise<readonly (`0x${string}` | null | undefined)[]> {
  const sent = await sdk.send({ signer, payload: { to } });
  const { receipt, txHash, attempts, payload } = await sent.mined();
  const again = await sdk.send({ signer: sent.signer, payload: { to: payload.to ?? to, value: payload.value } });
  const revert = { data: (await sdk.get(txId, { include: ["logs"] })).onChain?.revert?.data };
  return [
    ...[await sent.hash(), receipt?.contractAddress, receipt?.txHash, txHash, attempts[0]?.txHash],
    ...[again.signer, (await sdk.signers())[0]?.signer, (await sdk.reserveNonce({ signer })).signer, revert.data],
  ];
}

export async function wrong(): Promise<void> {
  // @ts-expect-error the name of an account is no address
  await sdk.send({ signer: "alice", payload: { to } });
  //: await sdk.send({ signer, payload: { to } });
  // @ts-expect-error a signer is text
  await library.send({ signer: 5, payload: { to } });
  //: await library.send({ signer, payload: { to } });
  // @ts-expect-error a text from outside is not checked yet
  await sdk.send({ signer: fromOutside, payload: { to } });
  //: await sdk.send({ signer: asAddress(fromOutside), payload: { to } });
  // @ts-expect-error no receiver is called bob
  await sdk.send({ signer, payload: { to: "bob" } });
  //: await sdk.send({ signer, payload: { to: "0x" } });
  // @ts-expect-error a receiver from outside is not checked yet
  await library.send({ signer, payload: { to: fromOutside, value: 1n } });
  //: await library.send({ signer, payload: { to: asAddress(fromOutside, "recipient"), value: 1n } });
  // @ts-expect-error a pool has a name
  await sdk.send({ signer: { pools: "payouts" }, payload: { to } });
  //: await sdk.send({ signer: { pool: "payouts" }, payload: { to } });
  // @ts-expect-error a double holds no amount of wei
  await sdk.send({ signer, payload: { to, value: 1e18 } });
  //: await sdk.send({ signer, payload: { to, value: 10n ** 18n } });
  // @ts-expect-error wei are whole
  await sdk.send({ signer, payload: { to, value: "1.5" } });
  //: await sdk.send({ signer, payload: { to, value: "15" } });
  // @ts-expect-error wei are digits
  await library.send({ signer, payload: { to, value: "1 ether" } });
  //: await library.send({ signer, payload: { to, value: "1000000000000000000" } });
  // @ts-expect-error an amount from outside is not checked yet
  await sdk.send({ signer, payload: { to, value: fromOutside } });
  //: await sdk.send({ signer, payload: { to, value: asWei(fromOutside) } });
  // @ts-expect-error an object is no quantity
  await sdk.send({ signer, payload: { to, value: {} } });
  //: await sdk.send({ signer, payload: { to, value: 0n } });
  // @ts-expect-error fees are wei, not doubles
  await library.send({ signer, payload: { to, maxFeePerGas: 2e9 } });
  //: await library.send({ signer, payload: { to, maxFeePerGas: 2_000_000_000n } });
  // @ts-expect-error fees are whole
  await sdk.send({ signer, payload: { to, gasPrice: "1.5" } });
  //: await sdk.send({ signer, payload: { to, gasPrice: "1500000000" } });
  // @ts-expect-error vlaue
  await sdk.send({ signer, payload: { to, vlaue: 1n } });
  //: await sdk.send({ signer, payload: { to, value: 1n } });
  // @ts-expect-error vlaue
  await library.send({ signer, payload: { to, vlaue: 1n } });
  //: await library.send({ signer, payload: { to, value: 1n } });
  // @ts-expect-error call data is hex
  await sdk.send({ signer, payload: { to, data: "deadbeef" } });
  //: await sdk.send({ signer, payload: { to, data: "0xdeadbeef" } });
  // @ts-expect-error code is hex
  await library.send({ signer, payload: { bytecode: "6000" } });
  //: await library.send({ signer, payload: { bytecode: "0x6000" } });
  // @ts-expect-error a deployment has no receiver
  await sdk.send({ signer, payload: { to, bytecode: "0x00" } });
  //: await sdk.send({ signer, payload: { bytecode: "0x00" } });
  // @ts-expect-error encoded data beside a function
  await sdk.send({ signer, payload: { to, data: "0x", function: "ping()", args: [] } });
  //: await sdk.send({ signer, payload: { to, function: "ping()", args: [] } });
  // @ts-expect-error no receiver
  await library.send({ signer, payload: { value: 1n } });
  //: await library.send({ signer, payload: { to, value: 1n } });
  // @ts-expect-error no payload
  await sdk.send({ signer });
  //: await sdk.send({ signer, payload: { to } });
  // @ts-expect-error payload's members stand inside it
  await sdk.send({ signer, to, value: 1n });
  //: await sdk.send({ signer, payload: { to, value: 1n } });
  // @ts-expect-error no such type
  await sdk.send({ signer, payload: { to, type: "eip4844" } });
  //: await sdk.send({ signer, payload: { to, type: "eip1559" } });
  // @ts-expect-error storage keys are hex
  await sdk.send({ signer, payload: { to, accessList: [{ address: to, storageKeys: ["1"] }] } });
  //: await sdk.send({ signer, payload: { to, accessList: [{ address: to, storageKeys: ["0x01"] }] } });
  // @ts-expect-error requestID
  await library.send({ signer, requestID: "order-42", payload: { to } });
  //: await library.send({ signer, requestId: "order-42", payload: { to } });
  // @ts-expect-error a request id is text
  await sdk.send({ signer, requestId: 42, payload: { to } });
  //: await sdk.send({ signer, requestId: "42", payload: { to } });
  // @ts-expect-error a chain's id is a number
  await sdk.send({ signer, chainId: "mainnet", payload: { to } });
  //: await sdk.send({ signer, chainId: 1, payload: { to } });
  // @ts-expect-error milliseconds are no instant
  await sdk.send({ signer, payload: { to }, validUntil: Date.now() });
  //: await sdk.send({ signer, payload: { to }, validUntil: new Date() });
  // @ts-expect-error timeoutMS
  await sdk.send({ signer, payload: { to } }, { timeoutMS: 5 });
  //: await sdk.send({ signer, payload: { to } }, { timeoutMs: 5 });
  // @ts-expect-error timeoutMS
  await library.send({ signer, payload: { to } }, { timeoutMS: 5 });
  //: await library.send({ signer, payload: { to } }, { timeoutMs: 5 });
  // @ts-expect-error a client of the SDK has no database transaction
  await sdk.send({ signer, payload: { to } }, { client: {} });
  //: await sdk.send({ signer, payload: { to } }, {});
  // @ts-expect-error sendMany takes a list
  await sdk.sendMany({ signer, payload: { to } });
  //: await sdk.sendMany([{ signer, payload: { to } }]);
}

export async function wrongByTheAbi(): Promise<void> {
  const tx = await library.send({ signer, payload: { to } });
  const call = { to, abi: erc20 } as const;
  // @ts-expect-error an amount is a bigint
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, "1"] } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } });
  // @ts-expect-error one argument is missing
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to] } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } });
  // @ts-expect-error an argument that is no address
  await library.send({ signer, payload: { to, abi: erc20, function: "transfer", args: ["bob", 1n] } });
  //: await library.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } });
  // @ts-expect-error no such function
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfre", args: [to, 1n] } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } });
  // @ts-expect-error reading it needs no transaction
  await sdk.send({ signer, payload: { to, abi: erc20, function: "balanceOf", args: [to] } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "deposit", args: [] } });
  // @ts-expect-error reading it needs no transaction, by its signature either
  await sdk.send({ signer, payload: { to, abi: erc20, function: "balanceOf(address)", args: [to] } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer(address,uint256)", args: [to, 1n] } });
  // @ts-expect-error a view function is called, not sent
  await library.send({ signer, payload: { to, function: "balanceOf(address) view returns (uint256)", args: [to] } });
  //: await library.send({ signer, payload: { to, function: "burn(address) returns (uint256)", args: [to] } });
  // @ts-expect-error transfer is not payable
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n], value: 1n } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "deposit", args: [], value: 1n } });
  // @ts-expect-error transfer is not payable, by its signature either
  await sdk.send({ signer, payload: { ...call, function: "transfer(address,uint256)", args: [to, 1n], value: 1n } });
  //: await sdk.send({ signer, payload: { to, abi: erc20, function: "deposit()", args: [], value: 1n } });
  // @ts-expect-error its constructor is not payable
  await sdk.send({ signer, payload: { bytecode: "0x00", abi: erc20, args: [1n], value: 1n } });
  //: await sdk.send({ signer, payload: { bytecode: "0x00", abi: erc20, args: [1n] } });
  // @ts-expect-error adress
  await sdk.send({ signer, payload: { to, function: "transfer(adress,uint256)", args: [to, "1"] } });
  //: await sdk.send({ signer, payload: { to, function: "transfer(address,uint256)", args: [to, "1"] } });
  // @ts-expect-error uint257
  await library.send({ signer, payload: { to, function: "transfer(address,uint257)", args: [to, "1"] } });
  //: await library.send({ signer, payload: { to, function: "transfer(address,uint256)", args: [to, "1"] } });
  // @ts-expect-error a mistake inside a tuple
  await sdk.send({ signer, payload: { to, function: "pay((address,unit256)[])", args: [[]] } });
  //: await sdk.send({ signer, payload: { to, function: "pay((address,uint256)[])", args: [[]] } });
  // @ts-expect-error a name alone needs an ABI
  await sdk.send({ signer, payload: { to, function: "transfer", args: [to, "1"] } });
  //: await sdk.send({ signer, payload: { to, function: "transfer(address,uint256)", args: [to, "1"] } });
  // @ts-expect-error the arguments are missing
  await sdk.send({ signer, payload: { to, function: "transfer(address,uint256)" } });
  //: await sdk.send({ signer, payload: { to, function: "ping()", args: [] } });
  // @ts-expect-error the constructor's arguments are missing
  await sdk.send({ signer, payload: { bytecode: "0x00", abi: erc20 } });
  //: await sdk.send({ signer, payload: { bytecode: "0x00", abi: erc20, args: [1n] } });
  // @ts-expect-error not a payload of any kind
  await library.send({ signer, payload: { to, function: 5, args: [] } });
  //: await library.send({ signer, payload: { to, function: [], args: [] } });
  // @ts-expect-error no such function
  await tx.replace({ reason: "r", payload: { to, abi: erc20, function: "transfre", args: [to, 1n] } });
  //: await tx.replace({ reason: "r", payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } });
  // @ts-expect-error a reason is required
  await tx.cancel({});
  //: await tx.cancel({ reason: "r" });
}

export async function wrongElsewhere(): Promise<void> {
  // @ts-expect-error no such action
  await sdk.resolve(txId, { reason: "r", action: "NUKE" });
  //: await sdk.resolve(txId, { reason: "r", action: "CANCEL" });
  // @ts-expect-error nothing to replace it with
  await library.replace(txId, { reason: "r" });
  //: await library.replace(txId, { reason: "r", payload: { to } });
  // @ts-expect-error fees of an action are wei
  await sdk.reprice(txId, { reason: "r", maxFeePerGas: 5 });
  //: await sdk.reprice(txId, { reason: "r", maxFeePerGas: 5n });
  // @ts-expect-error no such field of a query
  await sdk.list({ singer: signer });
  //: await sdk.list({ signer });
  // @ts-expect-error no such state
  await library.list({ state: "DONE" });
  //: await library.list({ state: "CONFIRMED" });
  // @ts-expect-error a hash is hex
  await sdk.list({ txHash: "abcd" });
  //: await sdk.list({ txHash: "0xabcd" });
  // @ts-expect-error a signer is an address
  await sdk.suspend("payouts", { reason: "r" });
  //: await sdk.suspend(signer, { reason: "r" });
  // @ts-expect-error a reservation lasts for seconds or minutes
  await sdk.reserveNonce({ signer, ttl: "1 hour" });
  //: await sdk.reserveNonce({ signer, ttl: "5m" });
  // @ts-expect-error signed bytes are hex
  await library.submitReserved(txId, "02f873");
  //: await library.submitReserved(txId, "0x02f873");
  // @ts-expect-error the callback says how the nonce was used
  await sdk.withNonce({ signer }, async () => undefined);
  //: await sdk.withNonce({ signer }, async ({ nonce }) => ({ txHash: asHex(String(nonce)) }));
  // @ts-expect-error no such part
  await sdk.get(txId, { include: ["receipts"] });
  //: await sdk.get(txId, { include: ["history"] });
  // @ts-expect-error a scope that does not exist
  await sdk.addKey({ name: "checkout", scopes: ["write"] });
  //: await sdk.addKey({ name: "checkout", scopes: ["submit"] });
  // @ts-expect-error apikey
  createClient({ url: "http://127.0.0.1:3000", apikey: "k" } satisfies ClientOptions);
  //: createClient({ url: "http://127.0.0.1:3000", apiKey: "k" } satisfies ClientOptions);
  // @ts-expect-error no URL
  createClient({ apiKey: "k" });
  //: createClient({ url: "http://127.0.0.1:3000", apiKey: "k" });
  // @ts-expect-error the name of a key is no key
  await createFencepost({ ...options, signers: ["mykey"] });
  //: await createFencepost({ ...options, signers: [key] });
  // @ts-expect-error a key from outside is not checked yet
  await createFencepost({ ...options, signers: [fromOutside] });
  //: await createFencepost({ ...options, signers: [asHex(fromOutside, "KEY"), privateKeyToAccount(key)] });
  // @ts-expect-error confirmation
  await createFencepost({ ...options, confirmation: 5 });
  //: await createFencepost({ ...options, confirmations: 5 });
  // @ts-expect-error a duration has a unit
  await createFencepost({ ...options, leaseDuration: "10" });
  //: await createFencepost({ ...options, leaseDuration: "10s", awsKmsKeyIds: ["alias/hot"] });
  // @ts-expect-error a ceiling in wei is no double
  await createFencepost({ ...options, maxCostWei: 1e18 });
  //: await createFencepost({ ...options, maxCostWei: 10n ** 18n });
  // @ts-expect-error a chain needs its endpoints
  defineConfig({ chains: [{ id: 1 }] });
  //: defineConfig({ chains: [{ id: 1, rpc: "https://rpc.example" }] });
  // @ts-expect-error an account of the chain's node is an address
  defineConfig({ nodeSigners: ["alice"] });
  //: defineConfig({ nodeSigners: [signer] });
  // @ts-expect-error a key of a configuration file is hex, too
  defineConfig({ privateKeys: ["mykey"] });
  //: defineConfig({ privateKeys: [key, asHex(fromOutside, "KEY")] });
  // @ts-expect-error a name stands for an address
  defineConfig({ signerNames: { "payouts-1": "alice" } });
  //: defineConfig({ signerNames: { "payouts-1": signer } });
  // @ts-expect-error the members of a pool are addresses
  defineConfig({ pools: { payouts: ["alice"] } });
  //: defineConfig({ pools: { payouts: [signer] } });
  // @ts-expect-error no such decision
  ({ action: "DROP", reason: "r" }) satisfies StuckDecision;
  //: ({ action: "NOOP", reason: "r" }) satisfies StuckDecision;
}
