/**
 * Methods of Ethereum's JSON-RPC that `/rpc` may forward, by exact name. A deny list would let unknown methods through:
 * `klay_sendTransaction` spends from an account that the endpoint holds.
 */

/** Read methods of execution-apis and geth that viem, ethers, web3.py, web3.js and cast use. */
export const READ_METHODS: ReadonlySet<string> = new Set(
  `eth_baseFee eth_blobBaseFee eth_blockNumber eth_call eth_coinbase eth_config eth_createAccessList
  eth_estimateGas eth_feeHistory eth_gasPrice eth_getBalance eth_getBlockByHash eth_getBlockByNumber
  eth_getBlockReceipts eth_getBlockTransactionCountByHash eth_getBlockTransactionCountByNumber eth_getCode
  eth_getFilterChanges eth_getFilterLogs eth_getHeaderByHash eth_getHeaderByNumber eth_getLogs eth_getProof
  eth_getRawTransactionByBlockHashAndIndex eth_getRawTransactionByBlockNumberAndIndex eth_getRawTransactionByHash
  eth_getStorageAt eth_getTransactionByBlockHashAndIndex eth_getTransactionByBlockNumberAndIndex
  eth_getTransactionByHash eth_getTransactionCount eth_getTransactionReceipt eth_getUncleByBlockHashAndIndex
  eth_getUncleByBlockNumberAndIndex eth_getUncleCountByBlockHash eth_getUncleCountByBlockNumber eth_hashrate
  eth_maxPriorityFeePerGas eth_mining eth_newBlockFilter eth_newFilter eth_newPendingTransactionFilter
  eth_protocolVersion eth_simulateV1 eth_syncing eth_uninstallFilter web3_clientVersion`.split(/\s+/),
);

/** Default limit on the number of blocks of a log filter. */
export const USUAL_LOGS_RANGE = 10_000;

/** Form of a method name: a namespace, an underscore, and the rest. */
export const METHOD_NAME = /^[a-z][a-zA-Z0-9]{0,30}_[a-zA-Z0-9_]{1,60}$/;

const ACTING = ["send", "sign", "submit", "propose", "set", "mine", "unlock", "import"] as const;

const MOVING = ["send", "sign", "submit"] as const;

/**
 * Searches the method's name, after the namespace, for the first camelCase word that makes a node act, such as `send`
 * or `sign`; returns its base form, or null if there is none. If the name begins with a word for moving money, upper
 * and lower case are ignored, because an endpoint may ignore them, too.
 */
export function actingWordIn(method: string): string | null {
  const name = method.slice(method.indexOf("_") + 1);
  const words = name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])/g) ?? [];
  const acting = words.map((word) => actingFormOf(word.toLowerCase())).find((word) => word !== null);
  return acting ?? MOVING.find((word) => name.toLowerCase().startsWith(word)) ?? null;
}

function actingFormOf(word: string): string | null {
  return ACTING.find((acting) => word === acting || word === `${acting}s` || word === `re${acting}`) ?? null;
}
