/**
 * Events of the token standards and of contracts that most others inherit. The first topic identifies the signature;
 * topics and data must also match its layout.
 */
import { parseAbiItem, toEventSelector } from "viem/utils";
import type { Hash, Hex } from "../../../domain/lane.ts";
import type { KnownEvent } from "../../../ports/chain.ts";

/**
 * Static types only: each word is an address, a number or a bool. Topics hold the indexed parameters, data the others.
 */
const KNOWN = [
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)",
  "event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId)",
  "event ApprovalForAll(address indexed owner, address indexed operator, bool approved)",
  "event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
  "event Deposit(address indexed to, uint256 value)",
  "event Withdrawal(address indexed from, uint256 value)",
  "event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)",
  "event Upgraded(address indexed implementation)",
  "event Paused(address account)",
  "event Unpaused(address account)",
] as const;

interface Input {
  readonly name: string;
  readonly type: string;
  readonly indexed: boolean;
}

type Layout = (typeof LAYOUTS)[number];

const LAYOUTS = KNOWN.map((text) => {
  const { name, inputs } = parseAbiItem(text) as { readonly name: string; readonly inputs: readonly Input[] };
  return { name, inputs, selector: toEventSelector(text) };
});

const WORD = 64;

export function knownEvent([selector, ...indexed]: readonly Hash[], data: Hex): KnownEvent | null {
  for (const layout of LAYOUTS) {
    const found = layout.selector === selector ? fitted(layout, indexed, data) : null;
    if (found !== null) return found;
  }
  return null;
}

function fitted({ name, inputs }: Layout, topics: readonly Hash[], data: Hex): KnownEvent | null {
  const words = data.slice(2).match(/.{64}/g) ?? [];
  const [outside, inside] = [inputs.filter(({ indexed }) => indexed), inputs.filter(({ indexed }) => !indexed)];
  if (outside.length !== topics.length || data.length !== 2 + inside.length * WORD) return null;
  const values = [...topics.map((topic) => topic.slice(2)), ...words];
  const args = [...outside, ...inside].flatMap((input, at) => {
    const value = wordAs(input.type, values[at] ?? "");
    return value === null ? [] : [{ name: input.name, value }];
  });
  return args.length === inputs.length ? { name, args } : null;
}

/** Null if the word is not a value of this type: then it is another event with the same selector. */
function wordAs(type: string, word: string): string | null {
  if (type === "uint256") return BigInt(`0x${word}`).toString();
  if (type === "bool") return /^0{63}[01]$/.test(word) ? String(word.endsWith("1")) : null;
  return /^0{24}/.test(word) ? `0x${word.slice(24)}` : null;
}
