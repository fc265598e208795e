import { EmbeddedError } from "../errors.ts";

/** The phrase that hardhat and anvil use too: the same ten accounts everywhere, and no secret. */
export const DEV_MNEMONIC = "test test test test test test test test test test test junk";

export interface DevAccount {
  readonly address: `0x${string}`;
  readonly privateKey: `0x${string}`;
}

/** Where wallets look first (BIP-44); the accounts are its children 0, 1, 2, … */
const DERIVATION_PATH = "m/44'/60'/0'/0";

/** viem is loaded here and not above, because importing it takes longer than starting the chain. */
export async function deriveAccounts(mnemonic: string, count: number): Promise<readonly DevAccount[]> {
  const [{ mnemonicToAccount, privateKeyToAddress }, { bytesToHex }] = await Promise.all([
    import("viem/accounts"),
    import("viem"),
  ]);
  // Stretching the phrase into a seed is the slow part: done once, not per account.
  const parent = mnemonicToAccount(mnemonic, { path: DERIVATION_PATH }).getHdKey();
  return Array.from({ length: count }, (_, index) => {
    const key = parent.deriveChild(index).privateKey;
    if (key === null) throw new EmbeddedError("START_FAILED", "the mnemonic yields no private key");
    const privateKey = bytesToHex(key);
    return { address: privateKeyToAddress(privateKey), privateKey };
  });
}
