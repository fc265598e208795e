import { Type } from "typebox";
import type { WrittenRoute } from "./routes.ts";
import { named, query } from "./shapes.ts";

const Call = named("JsonRpcCall", {
  jsonrpc: Type.String({ pattern: "^2\\.0$" }),
  id: Type.Union([Type.String(), Type.Integer()]),
  method: Type.String({ description: "As an Ethereum node has them; docs/rpc.md says which are answered here." }),
  params: Type.Optional(Type.Array(Type.Any())),
});

const Answer = named("JsonRpcAnswer", {
  jsonrpc: Type.String({ pattern: "^2\\.0$" }),
  id: Type.Union([Type.String(), Type.Integer(), Type.Null()]),
  result: Type.Optional(Type.Any()),
  error: Type.Optional(Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Any()) })),
});

const HASH = "0x6f4c9d2a1b8e3f70c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c";
const SEND = {
  ...{ jsonrpc: "2.0", id: 1, method: "eth_sendTransaction" },
  params: [
    {
      from: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
      to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
      value: "0x1",
      fencepostRequestId: "order-42",
    },
  ],
};

export const JsonRpcQuery = query({
  nonce: Type.String({ enum: ["ignore"], description: "Pass over the nonce that a transaction names." }),
  noCode: Type.String({
    enum: ["allow"],
    description: "Take call data to addresses without code, as `allowNoCode: true` of a transaction does.",
  }),
  repeat: Type.String({
    enum: ["merge"],
    description: "Sends without request id and nonce that are alike and less than a minute apart are one transaction.",
  }),
});

const REQUEST_ID = "The request id of the transaction sent; in a batch, with `:` and the call's place behind it.";

const jsonRpc = {
  description:
    "For clients that speak Ethereum's JSON-RPC: viem, ethers, web3.py, web3.js, cast. Sends and accounts are answered here, all else by the chain's endpoints. One call, or a batch of up to 1,000. Up to 8 MiB.",
  headers: { "Idempotency-Key": REQUEST_ID, "X-Fencepost-Request-Id": "The same, for clients that reserve the other." },
  query: JsonRpcQuery,
  body: {
    schema: Type.Union([Call, Type.Array(Call)]),
    examples: { call: SEND, batch: [SEND, { jsonrpc: "2.0", id: 2, method: "eth_chainId", params: [] }] },
  },
  responses: {
    200: {
      description: "An answer to each call, errors too.",
      schema: Type.Union([Answer, Type.Array(Answer)]),
      example: { jsonrpc: "2.0", id: 1, result: HASH },
    },
  },
  errors: ["INVALID_REQUEST", "QUEUE_FULL"],
} satisfies Partial<WrittenRoute>;

export const jsonRpcRoutes: Readonly<Record<string, WrittenRoute>> = {
  jsonRpc: { at: "post /rpc", summary: "Ethereum's JSON-RPC, of the only chain", ...jsonRpc },
  jsonRpcOfChain: { at: "post /rpc/{chainId}", summary: "Ethereum's JSON-RPC, of one chain", ...jsonRpc },
};
