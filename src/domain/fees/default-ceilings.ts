/**
 * Default cost ceilings by chain. docs/configuration.md shows this table, and a test compares the two.
 *
 * A default must be above the prices of the chain's busiest hours, but not above a loss that the account's owner can
 * bear. So it depends on the value of the native token. Ethereum's are geth's own, `gpo.maxprice` and `rpc.txfeecap`.
 */
export interface DefaultCeilings {
  /** Ceiling of the fee cap, in gwei per unit of gas. */
  readonly feeGwei: bigint;
  /** Ceiling of gas × fee cap, in thousandths of the native token (1e18 wei). */
  readonly gasCostMilli: bigint;
}

export interface CeilingGroup extends DefaultCeilings {
  readonly what: string;
  readonly chainIds: readonly number[];
}

/**
 * Ceilings of any chain that is not listed, treated as a rollup that pays in ether: enough for most chains, and a
 * bearable loss on any.
 */
export const UNKNOWN_CHAIN: DefaultCeilings = { feeGwei: 100n, gasCostMilli: 100n };

export const CEILING_GROUPS: readonly CeilingGroup[] = [
  { what: "Ethereum", feeGwei: 500n, gasCostMilli: 1_000n, chainIds: [1] },
  {
    what: "a native token worth hundreds or thousands, and cheap gas: BNB, and rollups that pay in ether",
    ...UNKNOWN_CHAIN,
    chainIds: [
      ...[10, 56, 130, 204, 288, 324, 480, 1101, 1868, 2741, 8453, 34443, 42161, 42170, 57073, 59144, 81457, 167000],
      ...[534352, 7777777, 1313161554],
    ],
  },
  { what: "bitcoin as the native token", feeGwei: 1n, gasCostMilli: 1n, chainIds: [30, 4200, 200901] },
  {
    what: "a native token worth a few up to some tens: Avalanche, Gnosis, Ethereum Classic, Metis, Moonriver, HyperEVM, Berachain",
    feeGwei: 1_000n,
    gasCostMilli: 5_000n,
    chainIds: [61, 100, 999, 1088, 1285, 43114, 80094],
  },
  {
    what: "a native token worth little: Polygon, Fantom, Sonic, Celo, Moonbeam, Kaia, Ronin and the like",
    feeGwei: 5_000n,
    gasCostMilli: 50_000n,
    chainIds: [
      ...[14, 40, 50, 122, 137, 143, 146, 250, 1030, 1284, 1329, 2020, 8217, 13371, 33139, 42220],
      ...[1666600000],
    ],
  },
  {
    what: "small prices for many units of gas: Filecoin and its test network, Mantle",
    feeGwei: 100n,
    gasCostMilli: 10_000n,
    chainIds: [314, 5000, 314159],
  },
  {
    what: "a native token worth cents, and gas priced in thousands of gwei: Cronos, IoTeX, Chiliz",
    feeGwei: 20_000n,
    gasCostMilli: 200_000n,
    chainIds: [25, 4689, 88888],
  },
  {
    what: "PulseChain, whose gas costs hundreds of thousands of gwei",
    feeGwei: 50_000_000n,
    gasCostMilli: 1_000_000_000n,
    chainIds: [369],
  },
  {
    what: "test networks, whose tokens are worth nothing",
    feeGwei: 5_000n,
    gasCostMilli: 50_000n,
    chainIds: [97, 10200, 17000, 43113, 80002, 84532, 421614, 560048, 11142220, 11155111, 11155420],
  },
  {
    what: "development chains: anvil, Hardhat, Ganache",
    feeGwei: 1_000n,
    gasCostMilli: 1_000n,
    chainIds: [1337, 31337],
  },
];

const BY_CHAIN: ReadonlyMap<number, DefaultCeilings> = new Map(
  CEILING_GROUPS.flatMap((group) => group.chainIds.map((chainId) => [chainId, group] as const)),
);

/** Default ceilings of a listed chain; null if it is not in the table, so that `UNKNOWN_CHAIN` applies. */
export function listedCeilings(chainId: number): DefaultCeilings | null {
  return BY_CHAIN.get(chainId) ?? null;
}
