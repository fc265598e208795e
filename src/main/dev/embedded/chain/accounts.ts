import { EmbeddedError } from "../embedded-error.ts";

/** The phrase that hardhat and anvil use too: the same ten accounts everywhere, and no secret. */
export const DEV_MNEMONIC = "test test test test test test test test test test test junk";

export interface DevAccount {
  readonly address: `0x${string}`;
  readonly privateKey: `0x${string}`;
}

/** Where wallets look first (BIP-44); the accounts are its children 0, 1, 2, … */
const DERIVATION_PATH = "m/44'/60'/0'/0";

/** viem's accounts are loaded here and not above, because importing them takes longer than starting the chain. */
export async function deriveAccounts(mnemonic: string, count: number): Promise<readonly DevAccount[]> {
  const { mnemonicToAccount, privateKeyToAddress } = await import("viem/accounts");
  // Stretching the phrase into a seed is the slow part: done once, not per account.
  const parent = mnemonicToAccount(mnemonic, { path: DERIVATION_PATH }).getHdKey();
  return Array.from({ length: count }, (_, index) => {
    const key = parent.deriveChild(index).privateKey;
    if (key === null) throw new EmbeddedError("START_FAILED", "the mnemonic yields no private key");
    const privateKey = `0x${Buffer.from(key).toString("hex")}` as const;
    return { address: privateKeyToAddress(privateKey), privateKey };
  });
}
