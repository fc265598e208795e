import { notInstalled } from "../needed-packages.ts";
import { type Answer, fault, type Handle, INTERNAL_ERROR } from "./json-rpc.ts";

type Edr = typeof import("@nomicfoundation/edr");
type EdrContext = import("@nomicfoundation/edr").EdrContext;
type ProviderConfig = import("@nomicfoundation/edr").ProviderConfig;

/** Mnemonic of hardhat and anvil: the same ten public accounts everywhere. */
const DEV_MNEMONIC = "test test test test test test test test test test test junk";

export interface DevAccount {
  /** Address of the account. */
  readonly address: `0x${string}`;
  /** Private key of the account: public, for development chains alone. */
  readonly privateKey: `0x${string}`;
}

export const DEFAULTS = {
  /** Interval between blocks, empty or not. Null without `automine`: only `mine` makes blocks. */
  blockTimeMs: null as number | null,
  /** Mine a block for every transaction as it arrives. */
  automine: false,
  chainId: 31337,
  mnemonic: DEV_MNEMONIC,
  accounts: 10,
  balanceEther: 10_000,
};

/** Options of the chain with every default filled in. */
export type ChainSettings = Readonly<typeof DEFAULTS>;

/** Mainnet's block gas limit and, since Osaka, its cap for one transaction (EIP-7825). */
const BLOCK_GAS_LIMIT = 60_000_000n;
const TRANSACTION_GAS_CAP = 16_777_216n;
const INITIAL_BASE_FEE_WEI = 1_000_000_000n;

/** EDR requires one context per process, even for several chains. */
let context: Promise<EdrContext> | null = null;

/** Creates an EVM chain in this process; the returned function handles JSON-RPC calls. */
export async function createEngine(settings: ChainSettings, accounts: readonly DevAccount[]): Promise<Handle> {
  const edr = await loadEdr();
  context ??= createContext(edr);
  const provider = await (await context).createProvider(
    edr.L1_CHAIN_TYPE,
    providerConfig(edr, settings, accounts),
    { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback: () => undefined },
    { subscriptionCallback: () => undefined },
    new edr.ContractDecoder(),
  );
  return async (method, params) => {
    const { data } = await provider.handleRequest(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    // EDR returns long responses as an object, short ones as text.
    return toAnswer(typeof data === "string" ? JSON.parse(data) : data);
  };
}

async function loadEdr() {
  try {
    return (await import("@nomicfoundation/edr")).default;
  } catch (error) {
    throw notInstalled({ who: "the embedded chain", parts: ["chain"] }, { cause: error });
  }
}

async function createContext(edr: Edr) {
  const created = new edr.EdrContext();
  await created.registerProviderFactory(edr.L1_CHAIN_TYPE, edr.l1ProviderFactory());
  return created;
}

function providerConfig(edr: Edr, settings: ChainSettings, accounts: readonly DevAccount[]): ProviderConfig {
  const { automine, balanceEther, blockTimeMs, chainId } = settings;
  const balance = BigInt(balanceEther) * 10n ** 18n;
  return {
    // Allow several blocks with the same timestamp: timestamps count seconds, and blocks may be made several times a
    // second. Otherwise the chain's time would run ahead.
    allowBlocksWithSameTimestamp: true,
    allowUnlimitedContractSize: false,
    bailOnCallFailure: true,
    // Accept a transaction that will revert, as real nodes do.
    bailOnTransactionFailure: false,
    chainId: BigInt(chainId),
    networkId: BigInt(chainId),
    coinbase: Buffer.alloc(20),
    defaultTransactionGasLimit: TRANSACTION_GAS_CAP,
    genesisState: [
      ...edr.l1GenesisState(edr.l1HardforkFromString(edr.OSAKA)),
      ...accounts.map(({ address }) => ({ address: Buffer.from(address.slice(2), "hex"), balance })),
    ],
    hardfork: edr.OSAKA,
    initialBaseFeePerGas: INITIAL_BASE_FEE_WEI,
    initialParentBeaconBlockRoot: Buffer.alloc(32),
    minGasPrice: 0n,
    mining: {
      autoMine: automine,
      blockGasLimit: BLOCK_GAS_LIMIT,
      ...(blockTimeMs === null ? {} : { interval: BigInt(blockTimeMs) }),
      memPool: { order: edr.MineOrdering.Priority },
    },
    network: { genesisBlockGasLimit: BLOCK_GAS_LIMIT, genesisBlobGas: { gasUsed: 0n, excessGas: 0n } },
    observability: {},
    ownedAccounts: accounts.map(({ privateKey }) => privateKey),
    precompileOverrides: [],
  };
}

function toAnswer(data: unknown) {
  if (typeof data === "object" && data !== null && ("result" in data || "error" in data)) return data as Answer;
  return fault(INTERNAL_ERROR, "the embedded chain gave no answer");
}
