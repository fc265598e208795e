/**
 * `fencepost start --workers N`: N nodes on one machine. This process serves no request. It starts the workers on a
 * shared port, replaces a worker that dies, and forwards stop signals.
 *
 * Node's round robin hands a worker one connection, and the next one only when the worker has accepted the first. So a
 * stopped worker (SIGSTOP) holds one connection. That connection is lost: killing the worker does not free it. The
 * alternative, workers that accept connections by themselves, is worse: one of them would get most connections of a
 * burst.
 */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { systemClock } from "../adapters/system/clock.ts";
import type { Logger } from "../adapters/system/logger.ts";
import { backoffMs } from "../domain/pace/when.ts";
import { bounded } from "../ports/clock.ts";
import type { Service } from "./service.ts";
import { listenForStop } from "./stop-signals.ts";

export interface WorkersRequest {
  readonly count: number;
  /** Prefix of the workers' node ids. */
  readonly nodeId: string;
  /** Command line of a worker: the same as that of this process. */
  readonly argv: readonly string[];
  readonly logger: Logger;
  readonly drainTimeoutMs: number;
}

type Ready = Pick<Service, "url" | "adminUrl" | "nodeId">;

/** Environment variable with the worker's number. A replacement gets the same number, and so the same node id. */
const SLOT = "WORKER_SLOT";
const START_AGAIN = { firstMs: 250, mostMs: 10_000 };
const LONG_ENOUGH_MS = 30_000;

/** The number of this worker; null in any other process. */
export function workerSlot(variables: Readonly<Record<string, string | undefined>>): string | null {
  return cluster.isWorker ? (variables[SLOT] ?? "0") : null;
}

/** Sends a worker's ready line to its parent process. */
export function reportReady(ready: Ready): void {
  process.send?.(ready);
}

export async function startWorkers(request: WorkersRequest, ready: (node: Ready) => void): Promise<void> {
  const stop = listenForStop();
  const pool = startPool(request);
  try {
    const readies = await Promise.race([pool.ready, stop.received.then(() => null)]);
    if (readies !== null) {
      const { url, adminUrl } = readies[0] as Ready;
      ready({ url, adminUrl, nodeId: request.nodeId });
      await stop.received;
    }
  } finally {
    await pool.stop();
    stop.dispose();
  }
}

/** `ready` resolves when every worker is ready, and rejects if a worker ends before it is ready. */
function startPool({ count, nodeId, argv, logger, drainTimeoutMs }: WorkersRequest) {
  const workers = new Map<number, Worker>();
  let isStopping = false;
  cluster.setupPrimary({ args: [...argv] });

  const launch = (slot: number, failures: number): Promise<Ready> => {
    const worker = cluster.fork({ [SLOT]: String(slot + 1), FENCEPOST_NODE_ID: nodeId });
    const startedMs = systemClock.monotonicMs();
    workers.set(slot, worker);
    return new Promise((resolve, reject) => {
      worker.once("message", resolve);
      worker.once("exit", (code, signal) => {
        workers.delete(slot);
        reject(new Error(`worker ${slot + 1} ended before it was ready (${signal ?? code})`));
        if (isStopping) return;
        const lasted = systemClock.monotonicMs() - startedMs;
        logger.log("error", { worker: slot + 1, code, signal }, "a worker ended; starting another");
        void launchAgain(slot, lasted > LONG_ENOUGH_MS ? 1 : failures + 1);
      });
    });
  };
  const launchAgain = async (slot: number, failures: number) => {
    await systemClock.sleep(backoffMs(START_AGAIN, failures, 1));
    if (!isStopping) await launch(slot, failures).catch(() => undefined);
  };
  const end = async (worker: Worker) => {
    const ended = once(worker, "exit");
    worker.process.kill("SIGTERM");
    await bounded(systemClock, ended, systemClock.monotonicMs() + drainTimeoutMs + 4_000);
    worker.process.kill("SIGKILL");
  };
  const stop = async () => {
    isStopping = true;
    await Promise.all([...workers.values()].map(end));
  };
  return { ready: Promise.all(Array.from({ length: count }, (_, slot) => launch(slot, 0))), stop };
}
