import { type Static, Type } from "typebox";
import { STATES } from "../domain/transitions.ts";
import { Address, ChainId, Hash, HexInput, Nonce, nullable, oneOf, Quantity, RequestId, TxId } from "./scalars.ts";

/** What POST /tx takes and answers. The create stage validates it in depth; this is its description and its type. */

const AccessList = Type.Array(Type.Object({ address: Address, storageKeys: Type.Array(Hash) }), {
  description: "EIP-2930 access list.",
});

const pricing = {
  value: Type.Optional(Quantity),
  gas: Type.Optional(Quantity),
  maxFeePerGas: Type.Optional(Quantity),
  maxPriorityFeePerGas: Type.Optional(Quantity),
  gasPrice: Type.Optional(Quantity),
  accessList: Type.Optional(AccessList),
  type: Type.Optional(oneOf(["legacy", "eip2930", "eip1559"])),
};

const Abi = Type.Array(Type.Unknown(), { description: "JSON, or human-readable lines." });

const RawPayload = Type.Object(
  { to: Address, data: Type.Optional(HexInput), ...pricing },
  {
    title: "RawPayload",
    additionalProperties: false,
    description: "A transfer, or a call whose data is already encoded.",
    examples: [{ to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: "1000000000000000" }],
  },
);

const CallPayload = Type.Object(
  {
    to: Address,
    function: Type.Unsafe<string | unknown[]>({
      anyOf: [{ type: "string" }, { type: "array" }],
      description:
        "Human-readable signature, or an ABI in which exactly one function fits. Beside `abi`: the name of one of its functions, or the signature where there are several of that name.",
    }),
    abi: Type.Optional(Abi),
    args: Type.Array(Type.Unknown()),
    ...pricing,
  },
  {
    title: "CallPayload",
    additionalProperties: false,
    description: "A contract call that Fencepost encodes.",
    examples: [
      {
        to: "0x5FbDB2315678afecb367f032d93F642f64180aa3",
        function: "transfer(address,uint256)",
        args: ["0x70997970C51812dc3A010C7d01b50e0d17dc79C8", "250"],
      },
    ],
  },
);

const DeployPayload = Type.Object(
  { bytecode: HexInput, abi: Type.Optional(Abi), args: Type.Optional(Type.Array(Type.Unknown())), ...pricing },
  {
    title: "DeployPayload",
    additionalProperties: false,
    description: "A contract creation.",
    examples: [{ bytecode: "0x600a600c600039600a6000f3602a60005260206000f3" }],
  },
);

export const Payload = Type.Union([RawPayload, CallPayload, DeployPayload], { title: "Payload" });

export const CreateTransaction = Type.Object(
  {
    chainId: Type.Optional(ChainId),
    signer: Address,
    requestId: Type.Optional(RequestId),
    payload: Payload,
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description: "The caller's own notes, up to 8 KiB of JSON; not compared between repeats.",
      }),
    ),
  },
  {
    title: "CreateTransaction",
    additionalProperties: false,
    examples: [
      {
        signer: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        requestId: "order-42",
        payload: { to: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8", value: "1000000000000000" },
      },
    ],
  },
);
export type CreateTransaction = Static<typeof CreateTransaction>;

const created = {
  txId: TxId,
  chainId: ChainId,
  signer: Address,
  nonce: nullable(Nonce),
  state: oneOf(STATES),
  requestId: nullable(RequestId),
};

export const CreatedTransaction = Type.Object(created, { title: "CreatedTransaction", additionalProperties: false });
export type CreatedTransaction = Static<typeof CreatedTransaction>;

export const CreatedItem = Type.Object(
  {
    status: Type.Unsafe<200 | 202>({
      type: "integer",
      enum: [202, 200],
      description: "202 accepted; 200 the same request had been accepted before.",
    }),
    ...created,
  },
  { title: "CreatedItem", additionalProperties: false },
);
export type CreatedItem = Static<typeof CreatedItem>;
