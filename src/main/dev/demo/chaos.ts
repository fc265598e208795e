/**
 * `fencepost chaos`: sends transfers in waves. In the middle of each wave a node is killed and restarted, or frozen
 * past its lease and resumed. Finally database and chain are compared, as in `demo`.
 */
import type { ChaosReport } from "../../../adapters/cli/diagnose.ts";
import type { ProgressOutput } from "../../process-output.ts";
import { auditedLoad } from "./audited-load.ts";
import { type EmbeddedCluster, type NodeChild, withCluster } from "./embedded-cluster.ts";
import { createProgress, type Progress } from "./progress.ts";

export interface ChaosPlan {
  readonly transactions: number;
  readonly kills: number;
}

const NODES = 3;

export function chaos({ transactions, kills }: ChaosPlan, output: ProgressOutput): Promise<ChaosReport> {
  const progress = createProgress(transactions, output);
  const done = { kills: 0, freezes: 0, restarts: 0 };
  return withCluster(NODES, progress, async (cluster) => {
    const { report } = await auditedLoad(cluster, { transactions, progress }, async (send) => {
      for (let wave = 0; wave < kills; wave++) {
        progress.phase(`sending, fault ${wave + 1} of ${kills}`);
        const from = Math.floor((wave * transactions) / kills);
        const count = Math.floor(((wave + 1) * transactions) / kills) - from;
        let blow: Promise<void> | null = null;
        await send(count, from, (accepted) => {
          if (blow !== null || accepted < from + count / 2) return;
          blow = strike(cluster, wave, { done, progress });
          // Avoids an unhandled rejection. Normally a failed kill or freeze is reported after the wave, when `blow` is
          // awaited. If the wave is interrupted, `blow` is never awaited.
          blow.catch(() => undefined);
        });
        await (blow as Promise<void> | null);
      }
    });
    return { ...report, ...done };
  });
}

interface Tally {
  readonly done: { kills: number; freezes: number; restarts: number };
  readonly progress: Progress;
}

/** Kills a random node in three of four waves, and freezes a random node in the fourth. */
async function strike({ nodes, restart }: EmbeddedCluster, wave: number, { done, progress }: Tally) {
  const index = Math.floor(Math.random() * nodes.length);
  const node = nodes[index] as NodeChild;
  if (wave % 4 === 3) {
    await node.freezePastLease(progress.say);
    done.freezes++;
    progress.say(`woke ${node.name} again`);
    return;
  }
  node.signal("SIGKILL");
  done.kills++;
  progress.say(`killed ${node.name} (kill -9)`);
  await restart(index);
  done.restarts++;
  progress.say(`started ${node.name} again`);
}
