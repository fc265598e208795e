/** Where people look chains up. Transactions stand under /tx, accounts under /address, blocks under /block. */
const EXPLORERS: Readonly<Record<number, string>> = {
  1: "https://etherscan.io",
  10: "https://optimistic.etherscan.io",
  56: "https://bscscan.com",
  100: "https://gnosisscan.io",
  130: "https://uniscan.xyz",
  137: "https://polygonscan.com",
  146: "https://sonicscan.org",
  324: "https://explorer.zksync.io",
  480: "https://worldscan.org",
  5_000: "https://mantlescan.xyz",
  8_453: "https://basescan.org",
  42_161: "https://arbiscan.io",
  42_170: "https://nova.arbiscan.io",
  42_220: "https://celoscan.io",
  43_114: "https://snowtrace.io",
  59_144: "https://lineascan.build",
  80_002: "https://amoy.polygonscan.com",
  81_457: "https://blastscan.io",
  84_532: "https://sepolia.basescan.org",
  421_614: "https://sepolia.arbiscan.io",
  534_352: "https://scrollscan.com",
  560_048: "https://hoodi.etherscan.io",
  11_155_111: "https://sepolia.etherscan.io",
  11_155_420: "https://sepolia-optimism.etherscan.io",
};

/** As configured, else by the chain's id; null: none is known. */
export function explorerOf(chainId: number, configured: string | null): string | null {
  const url = configured ?? EXPLORERS[chainId] ?? null;
  return url === null ? null : url.replace(/\/+$/, "");
}
