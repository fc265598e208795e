import type { Finding } from "../../adapters/cli/diagnose.ts";
import type { AnsweringEndpoint, EndpointFacts } from "../../adapters/evm/examine-endpoint.ts";
import type { ChainFacts, Facts } from "./facts.ts";
import { counted, fine, mistake, warning } from "./findings.ts";

/** Blocks that an endpoint may be behind another: two that were asked a moment apart. */
const USUAL_LAG_BLOCKS = 5;
/** No chain in use has a block less often. */
const OLDEST_HEAD_MS = 5 * 60_000;
const FURTHEST_AHEAD_MS = 60_000;

export function judgeChains({ chains, database }: Facts): readonly Finding[] {
  const served = database?.kind === "open" ? database.servedChains : [];
  return chains.flatMap((chain) => judgeChain(chain, served));
}

function judgeChain(chain: ChainFacts, served: readonly number[]): readonly Finding[] {
  const { endpoints } = chain;
  const answering = endpoints.filter(isAnswering);
  const silent = endpoints.flatMap((endpoint) => (endpoint.kind === "silent" ? [endpoint] : []));
  const silence = silent.map(({ label, reason }) => {
    const text = reason.startsWith(label) ? reason : `${label} does not answer: ${reason}`;
    const fix = "correct FENCEPOST_RPC_URL, or start the node there; a provider may want another key";
    return answering.length === 0 ? mistake("RPC_UNREACHABLE", text, fix) : warning("RPC_UNREACHABLE", text, fix);
  });
  if (answering.length === 0) return silence;
  const ids = [...judgeIds(chain, answering), ...judgeUnnamed(chain, answering, served)];
  if (ids.some(({ sign }) => sign === "mistake")) return [...silence, ...ids];
  const single = endpoints.length === 1 ? [judgeLoneliness(answering)] : [];
  return [
    ...silence,
    ...ids,
    ...single.flat(),
    ...judgeHeads(answering),
    ...answering.flatMap((each) => judgeAbilities(chain, each)),
  ];
}

function isAnswering(endpoint: EndpointFacts): endpoint is AnsweringEndpoint {
  return endpoint.kind === "answers";
}

function judgeIds({ chainId }: ChainFacts, answering: readonly AnsweringEndpoint[]): readonly Finding[] {
  const ids = [...new Set(answering.map((each) => each.chainId))];
  if (ids.length > 1) {
    const said = answering.map(({ label, chainId: id }) => `${label} is chain ${id}`).join(", ");
    return [
      mistake(
        "CHAIN_ID",
        `the endpoints are of different chains: ${said}`,
        "name the endpoints of one chain in FENCEPOST_RPC_URL; several chains go into `chains`",
      ),
    ];
  }
  const [said] = ids;
  if (chainId !== null && said !== chainId) {
    return [
      mistake(
        "CHAIN_ID",
        `chain ${chainId} is configured, and its endpoints are of chain ${said}`,
        "correct the id, or the URLs",
      ),
    ];
  }
  return [
    fine(
      "CHAIN",
      `chain ${said} answers at ${counted(answering.length, "endpoint")}, head ${Math.max(...answering.map(({ head }) => head))}`,
    ),
  ];
}

/** What an endpoint alone names has to be known to the database, unless that is fresh. */
function judgeUnnamed(
  { chainId }: ChainFacts,
  [endpoint]: readonly AnsweringEndpoint[],
  served: readonly number[],
): readonly Finding[] {
  const said = endpoint?.chainId;
  if (chainId !== null || said === undefined || served.length === 0 || served.includes(said)) return [];
  const text = `the endpoint says that it serves chain ${said}, and this database has served ${served.join(", ")} alone: start refuses it`;
  return [mistake("CHAIN_ID", text, `set FENCEPOST_CHAIN_ID=${said}, or the id in \`chains\`, where that is right`)];
}

/** A chain on this machine is one's own. */
function judgeLoneliness([endpoint]: readonly AnsweringEndpoint[]): readonly Finding[] {
  if (endpoint === undefined || /\/\/(127\.|localhost|\[::1\])/.test(`//${endpoint.label.replace(/^https?:\/\//, "")}`))
    return [];
  return [
    warning(
      "SINGLE_ENDPOINT",
      `chain ${endpoint.chainId} has one endpoint: where it lies, lags or is away, there is no other`,
      "name a second one, of another provider, in FENCEPOST_RPC_URL",
    ),
  ];
}

function judgeHeads(answering: readonly AnsweringEndpoint[]): readonly Finding[] {
  const best = Math.max(...answering.map(({ head }) => head));
  return answering.flatMap(({ label, head, headAheadMs, syncing }) => {
    const seconds = Math.round(Math.abs(headAheadMs) / 1_000);
    if (syncing)
      return [
        warning(
          "ENDPOINT_SYNCING",
          `${label} is still syncing, at block ${head}`,
          "wait until it is done, or use another",
        ),
      ];
    if (best - head > USUAL_LAG_BLOCKS)
      return [
        warning(
          "ENDPOINT_BEHIND",
          `${label} is ${best - head} blocks behind`,
          "use another endpoint, or see why it does not follow",
        ),
      ];
    if (headAheadMs > FURTHEST_AHEAD_MS) {
      return [
        warning(
          "CHAIN_CLOCK",
          `the head of ${label} is ${seconds} s ahead of this machine's clock`,
          "let this machine's clock follow NTP",
        ),
      ];
    }
    if (headAheadMs < -OLDEST_HEAD_MS) {
      return [
        warning(
          "CHAIN_CLOCK",
          `the head of ${label} is ${seconds} s old`,
          "the chain or the endpoint stands still, or this machine's clock is ahead: see which",
        ),
      ];
    }
    return [];
  });
}

function judgeAbilities(
  { finality, usesPendingCount }: ChainFacts,
  { label, lacks }: AnsweringEndpoint,
): readonly Finding[] {
  const findings: Finding[] = [];
  if (finality !== "confirmations" && lacks.includes(finality)) {
    findings.push(
      mistake(
        "FINALITY_TAG",
        `${label} does not know the block "${finality}", which finality asks for`,
        "set FENCEPOST_FINALITY=confirmations, or use another endpoint",
      ),
    );
  }
  if (lacks.includes("blockWithTransactions")) {
    findings.push(
      mistake(
        "ENDPOINT_METHODS",
        `${label} gives no blocks with their transactions`,
        "use an endpoint that serves eth_getBlockByNumber in full",
      ),
    );
  }
  if (lacks.includes("feeHistory")) {
    findings.push(
      warning(
        "ENDPOINT_METHODS",
        `${label} does not serve eth_feeHistory, which prices are taken from`,
        "use another endpoint, or name fees with every transaction",
      ),
    );
  }
  if (lacks.includes("logs")) {
    findings.push(
      warning(
        "ENDPOINT_LOGS",
        `${label} does not serve eth_getLogs`,
        "Fencepost does without; programs that share the endpoint may not",
      ),
    );
  }
  if (usesPendingCount && lacks.includes("pendingCount")) {
    findings.push(
      mistake(
        "PENDING_COUNT",
        `${label} does not count what is pending, which FENCEPOST_NONCE_CHAIN_QUERY asks for`,
        "set FENCEPOST_NONCE_CHAIN_QUERY=latest",
      ),
    );
  }
  return findings;
}
