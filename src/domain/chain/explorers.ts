/** Block explorer URLs by chain id, for explorers with the paths /tx, /address and /block. */
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
  5000: "https://mantlescan.xyz",
  8453: "https://basescan.org",
  42161: "https://arbiscan.io",
  42170: "https://nova.arbiscan.io",
  42220: "https://celoscan.io",
  43114: "https://snowtrace.io",
  59144: "https://lineascan.build",
  80002: "https://amoy.polygonscan.com",
  81457: "https://blastscan.io",
  84532: "https://sepolia.basescan.org",
  421614: "https://sepolia.arbiscan.io",
  534352: "https://scrollscan.com",
  560048: "https://hoodi.etherscan.io",
  11155111: "https://sepolia.etherscan.io",
  11155420: "https://sepolia-optimism.etherscan.io",
};

/** The configured block explorer, else the known one of the chain id; null if none is known. */
export function explorerOf(chainId: number, configured: string | null): string | null {
  const url = configured ?? EXPLORERS[chainId] ?? null;
  return url === null ? null : url.replace(/\/+$/, "");
}
