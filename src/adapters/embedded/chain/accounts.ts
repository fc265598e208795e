import { EmbeddedError } from "../errors.ts";

/** The phrase that hardhat and anvil use too: the same ten accounts everywhere, and no secret. */
export const DEV_MNEMONIC = "test test test test test test test test test test test junk";

export interface DevAccount {
  readonly address: `0x${string}`;
  readonly privateKey: `0x${string}`;
}

/** m/44'/60'/0'/0/i. viem is loaded here and not above, because importing it takes longer than starting the chain. */
export async function deriveAccounts(mnemonic: string, count: number): Promise<readonly DevAccount[]> {
  const [{ mnemonicToAccount }, { bytesToHex }] = await Promise.all([import("viem/accounts"), import("viem")]);
  return Array.from({ length: count }, (_, addressIndex) => {
    const account = mnemonicToAccount(mnemonic, { addressIndex });
    const key = account.getHdKey().privateKey;
    if (key === null) throw new EmbeddedError("START_FAILED", "the mnemonic yields no private key");
    return { address: account.address, privateKey: bytesToHex(key) };
  });
}
