import { Type } from "typebox";
import { STORY } from "../schemas/scalars.ts";
import { list, named, object, query, text } from "../schemas/shapes.ts";
import { declared } from "./call.ts";

const SEND = {
  jsonrpc: "2.0",
  id: 1,
  method: "eth_sendTransaction",
  params: [{ from: STORY.signer, to: STORY.recipient, value: "0x1", fencepostRequestId: "order-44" }],
};

const Call = named(
  "JsonRpcCall",
  { examples: [SEND] },
  {
    jsonrpc: Type.String({ pattern: "^2\\.0$" }),
    id: Type.Union([text(), Type.Number()]),
    method: text("As an Ethereum node has them; docs/rpc.md says which are answered here."),
    params: Type.Optional(list(Type.Any())),
  },
);

const Answer = named(
  "JsonRpcAnswer",
  { examples: [{ jsonrpc: "2.0", id: 1, result: STORY.txHash }] },
  {
    jsonrpc: Type.String({ pattern: "^2\\.0$" }),
    id: Type.Union([text(), Type.Number(), Type.Null()]),
    result: Type.Optional(Type.Any()),
    error: Type.Optional(object({ code: Type.Integer(), message: text(), data: Type.Optional(Type.Any()) })),
  },
);

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

/** Minimum scope for requests to the endpoint. Each call of a JSON-RPC batch is also checked for its own scope. */
const jsonRpc = {
  scope: { scope: "read", or: "submit" },
  description:
    "For clients that speak Ethereum's JSON-RPC: viem, ethers, web3.py, web3.js, cast. Sends and accounts are answered here, all else by the chain's endpoints. One call, or a batch of up to 1,000. Up to 8 MiB.",
  headers: { "Idempotency-Key": REQUEST_ID, "X-Fencepost-Request-Id": "The same, for clients that reserve the other." },
  query: JsonRpcQuery,
  body: Type.Union([Call, list(Call)]),
  examples: { call: SEND, batch: [SEND, { jsonrpc: "2.0", id: 2, method: "eth_chainId", params: [] }] },
  answers: {
    200: { description: "An answer to each call, errors too.", schema: Type.Union([Answer, list(Answer)]) },
  },
  errors: ["INVALID_REQUEST", "QUEUE_FULL"],
} as const;

export const jsonRpcCalls = declared({
  jsonRpc: { at: "post /rpc", summary: "Ethereum's JSON-RPC, of the only chain", ...jsonRpc },
  jsonRpcOfChain: { at: "post /rpc/{chainId}", summary: "Ethereum's JSON-RPC, of one chain", ...jsonRpc },
});
