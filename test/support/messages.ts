/** Messages of each kind that a key signs, the rules that allow them, and their signatures by two other libraries. */
import { type TypedDataDomain, verifyMessage, verifyTypedData } from "ethers";
import { recoverMessageAddress, recoverTypedDataAddress, type Hex as ViemHex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { createCodec } from "../../src/adapters/evm/codec/codec.ts";
import type { Address, Hex } from "../../src/domain/lane.ts";
import type { Message, MessageToSign } from "../../src/domain/messages/message.ts";
import { parsePersonal, parseTypedData } from "../../src/domain/messages/parse-message.ts";

const codec = createCodec();

export const TOKEN: Address = `0x${"70".repeat(20)}`;
export const SPENDER: Address = `0x${"22".repeat(20)}`;
const PREFIX = "Delivery of order ";

export const PERMIT = [
  { name: "owner", type: "address" },
  { name: "spender", type: "address" },
  { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" },
  { name: "deadline", type: "uint256" },
] as const;

/** A permit in the format of `eth_signTypedData_v4`. */
export function permit(overrides: object = {}, domain: object = {}, chainId = 1) {
  return {
    domain: { name: "Gold", version: "1", chainId, verifyingContract: TOKEN, ...domain },
    types: { Permit: [...PERMIT] },
    primaryType: "Permit",
    message: {
      owner: `0x${"11".repeat(20)}`,
      spender: SPENDER,
      value: "1000",
      nonce: "0",
      deadline: "1",
      ...overrides,
    },
  } as const;
}

const NESTED = {
  domain: { name: "Basket – größer", chainId: 1, salt: `0x${"5a".repeat(32)}` },
  types: {
    Basket: [
      { name: "items", type: "Item[]" },
      { name: "data", type: "bytes" },
      { name: "change", type: "int64" },
      { name: "isOpen", type: "bool" },
      { name: "tag", type: "bytes4" },
      { name: "note", type: "string" },
    ],
    Item: [
      { name: "to", type: "address" },
      { name: "amounts", type: "uint256[2]" },
    ],
  },
  primaryType: "Basket",
  message: {
    items: [
      { to: TOKEN, amounts: ["1", (2n ** 256n - 1n).toString()] },
      { to: SPENDER, amounts: ["0", "7"] },
    ],
    data: "0xdeadbeef00",
    change: "-42",
    isOpen: true,
    tag: "0x01020304",
    note: "for Zoë, by 😀",
  },
};

/** A message with its digest, as the lane's owner gives it to a key holder. */
export function toSign(message: Message, chainId = 1): MessageToSign {
  return { chainId, message, digest: codec.messageDigest(message) };
}

export const typed = (asked: Parameters<typeof parseTypedData>[0]) => toSign(parseTypedData(asked, codec));
export const text = (asked: string) => toSign(parsePersonal(asked));

/** One message of each kind, on chain 1. */
export const MESSAGES: readonly MessageToSign[] = [
  text(`${PREFIX}42 to Straße 7 – confirmed`),
  typed(permit()),
  typed(NESTED),
];

/** A signer's policy that allows these messages. */
export const RULES = {
  typedData: [
    {
      name: "permit",
      domain: { name: "Gold", version: "1", chainId: 1, verifyingContract: TOKEN },
      type: "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)",
      fields: { spender: { in: [SPENDER] }, value: { max: "1000" } },
    },
    {
      name: "basket",
      domain: NESTED.domain,
      type: "Basket(Item[] items,bytes data,int64 change,bool isOpen,bytes4 tag,string note)Item(address to,uint256[2] amounts)",
    },
  ],
  personal: [{ name: "delivery", prefix: PREFIX, maxLength: 200 }],
};

/** The signature by viem, which encodes the message itself. */
export function signedByViem(key: Hex, { message }: MessageToSign): Promise<Hex> {
  const account = privateKeyToAccount(key);
  if (message.kind === "personal") return account.signMessage({ message: { raw: message.bytes } });
  return account.signTypedData(formOf(message) as never);
}

/** Addresses that viem and ethers recover from a signature, in lower case. */
export async function signersBy({ message }: MessageToSign, signature: Hex): Promise<readonly string[]> {
  const found =
    message.kind === "personal"
      ? [
          await recoverMessageAddress({ message: { raw: message.bytes }, signature }),
          verifyMessage(Buffer.from(message.bytes.slice(2), "hex"), signature),
        ]
      : [
          await recoverTypedDataAddress({ ...formOf(message), signature } as never),
          verifyTypedData(formOf(message).domain as TypedDataDomain, mutable(message.types), message.value, signature),
        ];
  return found.map((each) => each.toLowerCase());
}

function formOf({ domain, types, primaryType, value }: Extract<Message, { kind: "typedData" }>) {
  const chainId = domain.chainId === undefined ? {} : { chainId: Number(domain.chainId) };
  return { domain: { ...domain, ...chainId }, types, primaryType, message: value };
}

const mutable = (types: object) => types as Record<string, { name: string; type: string }[]>;

const ORDER = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** Answers of a key holder that lies, or whose signature no contract takes: what it says, and how it is found out. */
export const LIES: readonly (readonly [what: string, answer: (key: Hex, asked: MessageToSign) => unknown, RegExp])[] = [
  ["of another key", (_, asked) => signedByViem(`0x${"44".repeat(32)}`, asked), /another key than that of/],
  ["of another message", (key) => signedByViem(key, text("Delivery of another order")), /signed another message/],
  ["with a high s", async (key, asked) => withHighS(await signedByViem(key, asked)), /contracts refuse/],
  ["with a v of EIP-155", async (key, asked) => `${(await signedByViem(key, asked)).slice(0, -2)}25`, /with v 37/],
  ["that is shorter (EIP-2098)", async (key, asked) => (await signedByViem(key, asked)).slice(0, -2), /no signature/],
  ["that is null", () => null, /no signature of 65 bytes/],
  ["of zeros", () => `0x${"00".repeat(65)}`, /another key than that of/],
];

/** The other valid signature: n − s, with the other parity. */
function withHighS(signature: Hex): ViemHex {
  const s = (ORDER - BigInt(`0x${signature.slice(66, 130)}`)).toString(16).padStart(64, "0");
  return `${signature.slice(0, 66)}${s}${signature.endsWith("1b") ? "1c" : "1b"}` as ViemHex;
}
