/** Sign-In with Ethereum (ERC-4361): the message is parsed by its grammar, so that nothing in it escapes its rule. */
import type { Address } from "../lane.ts";

export interface SignIn {
  /** Domain, with the scheme if the message names one. */
  readonly domain: string;
  readonly address: string;
  readonly uri: string;
  readonly version: string;
  readonly chainId: string;
  readonly nonce: string;
  readonly issuedAt: string;
  readonly resources: readonly string[];
}

const OPENING = " wants you to sign in with your Ethereum account:";
const TIME = "\\d{4}-\\d{2}-\\d{2}[Tt]\\d{2}:\\d{2}:\\d{2}(?:\\.\\d+)?(?:[Zz]|[+-]\\d{2}:\\d{2})";
const URI = "[A-Za-z][A-Za-z0-9+.-]*:[\\x21-\\x7e]*";
const GRAMMAR = new RegExp(
  `^(?<domain>[\\x21-\\x7e]+)${OPENING}\\n(?<address>0x[0-9a-fA-F]{40})\\n\\n(?:[^\\n]+\\n)?\\n` +
    `URI: (?<uri>${URI})\\nVersion: (?<version>\\d+)\\nChain ID: (?<chainId>\\d+)\\nNonce: (?<nonce>[A-Za-z0-9]{8,})\\n` +
    `Issued At: (?<issuedAt>${TIME})(?:\\nExpiration Time: ${TIME})?(?:\\nNot Before: ${TIME})?` +
    `(?:\\nRequest ID: [A-Za-z0-9._~!$&'()*+,;=:@%-]*)?(?<resources>\\nResources:(?:\\n- ${URI})*)?$`,
);

/** True for a text that a reader takes for a sign-in, whether or not it follows the grammar. */
export function looksLikeSignIn(text: string): boolean {
  return text.includes(OPENING.trim());
}

/** Parses a sign-in; null if it does not follow the grammar of ERC-4361. */
export function parseSignIn(text: string): SignIn | null {
  const groups = GRAMMAR.exec(text)?.groups;
  if (groups === undefined) return null;
  const {
    domain = "",
    address = "",
    uri = "",
    version = "",
    chainId = "",
    nonce = "",
    issuedAt = "",
    resources,
  } = groups;
  const named = resources === undefined ? [] : resources.split("\n- ").slice(1);
  return { domain, address, uri, version, chainId, nonce, issuedAt, resources: named };
}

/** The rule of a sign-in. */
export interface SignInBounds {
  /** Compared exactly, with the scheme if there is one. */
  readonly domain: string;
  readonly chainId: number;
  readonly uri: string;
  /** Resources that the message may name; it may leave some out. They may carry rights (ERC-5573). */
  readonly resources: ReadonlySet<string>;
}

/** The first field of the sign-in that the rule does not allow; null if it allows them all. */
export function beyondSignIn(signIn: SignIn, bounds: SignInBounds, signer: Address): string | null {
  if (signIn.domain !== bounds.domain) return "domain";
  if (signIn.address.toLowerCase() !== signer) return "address";
  if (signIn.uri !== bounds.uri) return "uri";
  if (signIn.version !== "1") return "version";
  if (signIn.chainId !== String(bounds.chainId)) return "chainId";
  return signIn.resources.every((each) => bounds.resources.has(each)) ? null : "resources";
}
