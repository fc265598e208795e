import type { Message } from "./message.ts";
import { personalText } from "./personal-text.ts";
import { parseSignIn } from "./sign-in.ts";

/** Longest domain that is kept, in characters: an index has it. */
const LONGEST = 255;

/**
 * Name of the application for which a message is signed, for lists: the name in the EIP-712 domain, else its contract,
 * or the domain of a sign-in (ERC-4361). Null if the message names none.
 */
export function domainOf(message: Message): string | null {
  const found = message.kind === "typedData" ? typedDomain(message) : signInDomain(message);
  return found === null ? null : [...found].slice(0, LONGEST).join("");
}

function typedDomain({ domain: { name, verifyingContract } }: Extract<Message, { readonly kind: "typedData" }>) {
  return name ?? verifyingContract ?? null;
}

function signInDomain({ bytes }: Extract<Message, { readonly kind: "personal" }>) {
  const read = personalText(bytes);
  return "text" in read ? (parseSignIn(read.text)?.domain ?? null) : null;
}
