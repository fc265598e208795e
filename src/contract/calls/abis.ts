import { type Static, Type } from "typebox";
import { Address, Timestamp } from "../schemas/scalars.ts";
import { closed, list, named, nullable, optional, text } from "../schemas/shapes.ts";
import { ADMIN, declared, ok, READ } from "./call.ts";

const Fragments = Type.Array(Type.Unsafe<unknown>({}), {
  minItems: 1,
  maxItems: 2_000,
  description: "Solidity's JSON ABI, or signatures such as `function pay(address to)`.",
  examples: [["event Paid(address indexed to, uint256 amount)"]],
});

const NamedAbi = closed("NamedAbi", {
  name: Type.String({
    minLength: 1,
    maxLength: 64,
    description: "Shown as the contract's name.",
    examples: ["Payouts"],
  }),
  abi: Fragments,
  ...optional({
    addresses: list(Address, {
      maxItems: 1_000,
      description:
        "Contracts that it describes, on every chain. Without any: every contract that no other entry names.",
    }),
  }),
});

export const Abis = named("Abis", {
  items: list(NamedAbi),
  configured: list(
    NamedAbi,
    "ABIs of this node's configuration, used for contracts, and for calls, that `items` does not describe. PUT does not change them.",
    [],
  ),
  changedAt: nullable(Timestamp),
  changedBy: nullable(text("`operator:<name of the API key>`.", "operator:alice")),
});
export type Abis = Static<typeof Abis>;

export const PutAbis = closed("PutAbis", {
  items: Type.Array(NamedAbi, { maxItems: 500, description: "All ABIs from now on; none: every one is removed." }),
});
export type PutAbis = Static<typeof PutAbis>;

/** Maximum size of all ABIs together. */
const ABIS_BYTES = 1024 * 1024;

export const abis = declared({
  getAbis: {
    at: "get /api/v1/abis",
    scope: READ,
    face: "abis",
    summary: "Read the ABIs that calls, logs and reverts are decoded with",
    description:
      "Only for a key without limits: the entries name the contracts of all signers. Every key gets its own transactions in words.",
    answers: ok("Known to every node within seconds.", Abis),
  },
  putAbis: {
    at: "put /api/v1/abis",
    scope: ADMIN,
    face: "putAbis",
    audited: true,
    summary: "Replace the ABIs",
    description:
      "Only for people who read: `decoded` of transactions, and names of logs and errors. Nothing is decided by them. Up to 1 MiB.",
    body: PutAbis,
    bodyBytes: ABIS_BYTES,
    answers: ok("Stored.", Abis),
  },
});
