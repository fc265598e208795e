import type { AnsweringEndpoint } from "../../adapters/evm/reads/examine-endpoint.ts";
import { counted, type Findings, fine, mistake, warning } from "./findings.ts";
import type { ChainFacts, Facts } from "./gather.ts";

/**
 * Number of blocks by which one endpoint may lag behind another without being reported: they are queried at slightly
 * different times.
 */
const USUAL_LAG_BLOCKS = 5;
/** Maximum age of a chain's newest block: no chain in use has longer block intervals. */
const OLDEST_HEAD_MS = 5 * 60_000;
const FURTHEST_AHEAD_MS = 60_000;

export function judgeChains({ chains, database }: Facts): Findings {
  const served = database?.kind === "open" ? database.servedChains : [];
  return chains.flatMap((chain) => judgeChain(chain, served));
}

function judgeChain(chain: ChainFacts, served: readonly number[]): Findings {
  const { endpoints } = chain;
  const answering = endpoints.flatMap((endpoint) => (endpoint.kind === "answers" ? [endpoint] : []));
  const worst = answering.length === 0 ? mistake : warning;
  const silence = endpoints.map((endpoint) => {
    if (endpoint.kind === "answers") return null;
    const { label, reason } = endpoint;
    return worst("RPC_UNREACHABLE", reason.startsWith(label) ? reason : `${label} does not answer: ${reason}`);
  });
  const [first] = answering;
  if (first === undefined) return silence;
  const problem = idProblem(chain, answering, served);
  if (problem !== null) return [...silence, mistake("CHAIN_ID", problem)];
  const best = Math.max(...answering.map(({ head }) => head));
  const found = `chain ${first.chainId} answers at ${counted(answering.length, "endpoint")}, head ${best}`;
  const alone = `one endpoint decides alone about chain ${first.chainId}: if it lies, it is believed; if it is away, nothing is sent`;
  return [
    ...silence,
    fine("CHAIN", found),
    endpoints.length === 1 && warning("SINGLE_ENDPOINT", alone),
    ...answering.map((each) => judgeHead(each, best)),
    ...answering.flatMap((each) => judgeAbilities(chain, each)),
  ];
}

/**
 * Problem with the chain id. A chain id that comes from an endpoint, not from the configuration, must be known to the
 * database, unless the database is new.
 */
function idProblem({ chainId }: ChainFacts, answering: readonly AnsweringEndpoint[], served: readonly number[]) {
  const [named = 0, ...others] = new Set(answering.map((each) => each.chainId));
  if (others.length > 0) {
    const ids = answering.map(({ label, chainId: id }) => `${label} is chain ${id}`).join(", ");
    return `the endpoints are of different chains: ${ids}`;
  }
  if (chainId !== null)
    return chainId === named ? null : `chain ${chainId} is configured, and its endpoints are of chain ${named}`;
  if (served.length === 0 || served.includes(named)) return null;
  return `the endpoint says that it serves chain ${named}, and this database has served ${served.join(", ")} alone: start refuses it`;
}

function judgeHead({ label, head, headAheadMs, syncing }: AnsweringEndpoint, best: number): Findings[number] {
  const seconds = Math.round(Math.abs(headAheadMs) / 1_000);
  if (syncing) return warning("ENDPOINT_SYNCING", `${label} is still syncing, at block ${head}`);
  if (best - head > USUAL_LAG_BLOCKS) return warning("ENDPOINT_BEHIND", `${label} is ${best - head} blocks behind`);
  if (headAheadMs > FURTHEST_AHEAD_MS)
    return warning("CHAIN_CLOCK", `the head of ${label} is ${seconds} s ahead of this machine's clock`);
  return headAheadMs < -OLDEST_HEAD_MS && warning("CHAIN_CLOCK", `the head of ${label} is ${seconds} s old`);
}

function judgeAbilities({ finality, usesPendingCount }: ChainFacts, { label, lacks }: AnsweringEndpoint): Findings {
  const tag = `${label} does not know the block "${finality}", which finality asks for`;
  const blocks = `${label} gives no blocks with their transactions (eth_getBlockByNumber)`;
  const prices = `${label} does not serve eth_feeHistory, which prices are taken from`;
  const counts = `${label} does not count what is pending, which FENCEPOST_NONCE_CHAIN_QUERY asks for`;
  return [
    finality !== "confirmations" && lacks.includes(finality) && mistake("FINALITY_TAG", tag),
    lacks.includes("blockWithTransactions") && mistake("ENDPOINT_METHODS", blocks),
    lacks.includes("feeHistory") && warning("ENDPOINT_METHODS", prices),
    lacks.includes("logs") && warning("ENDPOINT_LOGS", `${label} does not serve eth_getLogs`),
    usesPendingCount && lacks.includes("pendingCount") && mistake("PENDING_COUNT", counts),
  ];
}
