/**
 * Mistakes with the library and the SDK that must not compile. Each is marked as an expected error; the compiler
 * reports a marked line that has no error. `types.test.ts` runs the real compiler on this file.
 */
import { type ClientOptions, createClient, type FencepostClient } from "../../src/client/index.ts";
import { createFencepost, type Fencepost, type FencepostOptions } from "../../src/index.ts";

declare const sdk: FencepostClient;
declare const library: Fencepost;
declare const options: FencepostOptions;

const signer = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266";
const to = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8";
const txId = "019a4b7e-8a90-7cc1-b1d2-3e4f5a6b7c8d";

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
  { type: "constructor", stateMutability: "nonpayable", inputs: [{ name: "supply", type: "uint256" }] },
] as const;

/** Correct uses, all of which must compile. */
export function right(): unknown[] {
  const loaded = JSON.parse("[]") as unknown[];
  return [sdk, library].flatMap((face) => [
    face.send({ signer, payload: { to, value: 1n } }),
    face.send({ signer, chainId: 1, requestId: "r", metadata: { a: 1 }, payload: { to, data: "0x", gas: 21_000 } }),
    face.send({ signer, payload: { to, function: "transfer(address,uint256)", args: [to, "1"] } }),
    face.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } }),
    face.send({ signer, payload: { to, abi: erc20, function: "transfer(address,uint256)", args: [to, "1"] } }),
    face.send({ signer, payload: { to, abi: loaded, function: "anything", args: [1] } }),
    face.send({ signer, payload: { to, abi: ["function ping()"], function: "ping", args: [] } }),
    face.send({ signer, payload: { bytecode: "0x00" } }),
    face.send({ signer, payload: { to }, validUntil: new Date() }),
    face.send({ signer, payload: { to }, validUntil: "2026-11-02T09:45:00Z", allowNoCode: true }),
    face.send({ signer, payload: { bytecode: "0x00", abi: erc20, args: [1n] } }),
    face.sendMany([{ signer, payload: { to } }], { timeoutMs: 5 }),
    face.replace(txId, { reason: "r", payload: { to, abi: erc20, function: "transfer", args: [to, 1n] } }),
    face.resolve(txId, { reason: "r", action: "CANCEL" }),
    face.list({ signer, state: "STUCK", limit: 10 }, { signal: new AbortController().signal }),
  ]);
}

/** viem accepts the values of responses: hashes and addresses have the type `0x…`. */
export async function answered(): Promise<readonly (`0x${string}` | null | undefined)[]> {
  const sent = await sdk.send({ signer, payload: { to } });
  const { receipt, txHash, attempts } = await sent.mined();
  return [await sent.hash(), receipt?.contractAddress, receipt?.txHash, txHash, attempts[0]?.txHash];
}

export async function wrong(): Promise<void> {
  // @ts-expect-error a signer is text
  await sdk.send({ signer: 5, payload: { to } });
  // @ts-expect-error a signer is text
  await library.send({ signer: 5, payload: { to } });

  // @ts-expect-error vlaue
  await sdk.send({ signer, payload: { to, vlaue: 1n } });
  // @ts-expect-error vlaue
  await library.send({ signer, payload: { to, vlaue: 1n } });

  // @ts-expect-error an object is no quantity
  await sdk.send({ signer, payload: { to, value: {} } });
  // @ts-expect-error an object is no quantity
  await library.send({ signer, payload: { to, value: {} } });

  // @ts-expect-error no such action
  await sdk.resolve(txId, { reason: "r", action: "NUKE" });
  // @ts-expect-error no such action
  await library.resolve(txId, { reason: "r", action: "NUKE" });

  // @ts-expect-error nothing to replace it with
  await sdk.replace(txId, { reason: "r" });
  // @ts-expect-error nothing to replace it with
  await library.replace(txId, { reason: "r" });

  // @ts-expect-error no such field of a query
  await sdk.list({ singer: signer });
  // @ts-expect-error no such field of a query
  await library.list({ singer: signer });

  // @ts-expect-error timeoutMS
  await sdk.send({ signer, payload: { to } }, { timeoutMS: 5 });
  // @ts-expect-error timeoutMS
  await library.send({ signer, payload: { to } }, { timeoutMS: 5 });
  // @ts-expect-error apikey
  createClient({ url: "http://127.0.0.1:3000", apikey: "k" } satisfies ClientOptions);
  // @ts-expect-error confirmation
  await createFencepost({ ...options, confirmation: 5 });
}

export async function wrongByTheAbi(): Promise<void> {
  // @ts-expect-error an amount is a bigint
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, "1"] } });
  // @ts-expect-error an amount is a bigint
  await library.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to, "1"] } });
  // @ts-expect-error one argument is missing
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfer", args: [to] } });
  // @ts-expect-error no such function
  await sdk.send({ signer, payload: { to, abi: erc20, function: "transfre", args: [to, 1n] } });
  // @ts-expect-error reading it needs no transaction
  await sdk.send({ signer, payload: { to, abi: erc20, function: "balanceOf", args: [to] } });
  // @ts-expect-error what the constructor takes is missing
  await sdk.send({ signer, payload: { bytecode: "0x00", abi: erc20 } });
  // @ts-expect-error not a payload of any kind
  await library.send({ signer, payload: { to, function: 5, args: [] } });
  const tx = await library.send({ signer, payload: { to } });
  // @ts-expect-error no such function
  await tx.replace({ reason: "r", payload: { to, abi: erc20, function: "transfre", args: [to, 1n] } });
  // @ts-expect-error a reason is asked for
  await tx.cancel({});
}
