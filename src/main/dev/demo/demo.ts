import type { DemoReport } from "../../../adapters/cli/present.ts";
import { systemClock } from "../../../adapters/system/clock.ts";
import type { LaneLease } from "../../../client/index.ts";
import type { ProgressOutput } from "../../process-output.ts";
import { type Accepted, auditedLoad } from "./audited-load.ts";
import { type EmbeddedCluster, LEASE_MS, type NodeChild, withCluster } from "./embedded-cluster.ts";
import { createProgress } from "./progress.ts";

const NODES = 3;

/**
 * `fencepost demo`: three nodes on one database and one chain, and a thousand transfers. Half-way the busiest node is
 * killed, and another is frozen past its lease and resumed. Finally database and chain are compared.
 */
export function demo(transactions: number, output: ProgressOutput): Promise<DemoReport> {
  const progress = createProgress(transactions, output);
  return withCluster({ nodes: NODES }, progress, async (cluster) => {
    progress.phase("sending");
    const load = await auditedLoad(cluster, { transactions, progress }, async (send) => {
      let disaster: Promise<Disaster> | null = null;
      await send(transactions, 0, (accepted) => {
        if (disaster === null && accepted >= transactions / 2) disaster = strike(cluster, progress.say);
      });
      return disaster as Promise<Disaster> | null;
    });
    const { done: struck, accepted, survivor, report } = load;
    const leases = await survivor.client.leases();
    return {
      ...report,
      takeovers: sumOfTokens(leases) - (struck?.tokens ?? sumOfTokens(leases)),
      fencedWrites: await fencedWrites(cluster.nodes),
      takeOverSeconds: takeOverSeconds(struck, accepted),
    };
  });
}

/** Sum of the fencing tokens of all lanes. It increases by one whenever a lane gets a new owner. */
function sumOfTokens(leases: readonly LaneLease[]) {
  return leases.reduce((sum, { fencingToken }) => sum + fencingToken, 0);
}

type Disaster = Awaited<ReturnType<typeof strike>>;

/**
 * Kills the node with the most lanes, and freezes another for longer than its lease. Returns the sum of all fencing
 * tokens before that, and the signers of the killed node.
 */
async function strike({ nodes }: EmbeddedCluster, say: (line: string) => void) {
  const leases = await (nodes[0] as NodeChild).client.leases();
  const held = (node: NodeChild) => leases.filter(({ nodeId }) => nodeId === node.nodeId);
  const [busiest, frozen] = [...nodes].sort((a, b) => held(b).length - held(a).length) as [NodeChild, NodeChild];
  const orphans = new Set(held(busiest).map(({ signer }) => signer.toLowerCase()));
  busiest.signal("SIGKILL");
  const killedAtMs = systemClock.monotonicMs();
  say(`killed ${busiest.name}, which acted for ${orphans.size} signers (kill -9)`);
  await systemClock.sleep(LEASE_MS);
  await frozen.freezePastLease(say);
  say(`woke ${frozen.name} again: its late writes are refused, it re-joins as a new instance`);
  return { tokens: sumOfTokens(leases), killedAtMs, orphans };
}

function takeOverSeconds(struck: Disaster | null, accepted: readonly Accepted[]) {
  if (struck === null) return null;
  const first = accepted.find(
    ({ signer, atMs }) => atMs > struck.killedAtMs + 50 && struck.orphans.has(signer.toLowerCase()),
  );
  return first === undefined ? null : (first.atMs - struck.killedAtMs) / 1_000;
}

async function fencedWrites(nodes: readonly NodeChild[]) {
  let sum = 0;
  for (const node of nodes.filter((each) => each.alive())) {
    const text = await (await fetch(`${node.url}/metrics`)).text();
    sum += Number(/^fencepost_lease_fenced_total (\d+)/m.exec(text)?.[1] ?? 0);
  }
  return sum;
}
