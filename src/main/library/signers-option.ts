import type { SigningAccount } from "../../adapters/evm/signers/remote/viem-account.ts";
import type { Hex } from "../../client/hex.ts";
import { ConfigurationError } from "../config/config.ts";
import { privateKey } from "../config/credentials.ts";
import { SIGNER_KEYS } from "../config/schema.ts";
import { OPTIONS } from "./library-errors.ts";

/** The option `signers`, split into keys and accounts. Mistakes name the item, and never quote it: it may be a key. */
export function parseSigners(signers: readonly unknown[], others: object) {
  const keys: Hex[] = [];
  const accounts: SigningAccount[] = [];
  const mistakes: string[] = [];
  for (const [index, signer] of signers.entries()) {
    const parsed = isAccount(signer) ? signer : privateKey(signer);
    if ("mistake" in parsed) mistakes.push(`${OPTIONS}: signers[${index}]: ${parsed.mistake}, or an account of viem`);
    else if ("value" in parsed) keys.push(parsed.value);
    else accounts.push(parsed);
  }
  if (signers.length === 0 && !SIGNER_KEYS.some((key) => Object.hasOwn(others, key))) {
    const sources = SIGNER_KEYS.join(", ");
    mistakes.push(`${OPTIONS}: signers: at least one is required, here or by one of ${sources}`);
  }
  if (
    accounts.length > 0 &&
    Object.hasOwn(others, "signing") &&
    (others as { signing?: unknown }).signing === "process"
  )
    mistakes.push(`${OPTIONS}: signing: "process" cannot hold an account of viem, which is a function of this process`);
  if (mistakes.length > 0) throw new ConfigurationError(mistakes);
  return { keys, accounts };
}

function isAccount(signer: unknown): signer is SigningAccount {
  const { address, signTransaction } = Object(signer) as Readonly<Record<string, unknown>>;
  return typeof signTransaction === "function" && typeof address === "string" && /^0x[\da-f]{40}$/i.test(address);
}
