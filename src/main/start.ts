import { systemClock } from "../adapters/system/clock.ts";
import type { Logger } from "../adapters/system/logger.ts";
import { bounded } from "../ports/clock.ts";
import { type Service, type ServiceOptions, startService } from "./service.ts";
import { listenForStop } from "./stop-signals.ts";

/** `fencepost start`: runs one node on the configured database and chains, until a stop signal. */
export async function start(request: Omit<ServiceOptions, "waitUntil">, ready: (node: Service) => void): Promise<void> {
  const { config, logger } = request;
  const stop = listenForStop();
  try {
    const starting = startService({ ...request, waitUntil: stop.signal });
    const service = await Promise.race([starting, stop.received.then(() => null)]);
    if (service === null) await endWhileStarting(starting, config.drainTimeoutMs);
    else await runUntilStopped(service, stop.received, { logger, ready });
  } finally {
    stop.dispose();
  }
}

/**
 * Stops a node that was still starting. If its start hangs, the process simply ends: the node has accepted no request
 * yet.
 */
async function endWhileStarting(starting: Promise<Service>, graceMs: number) {
  const stopped = starting.then((service) => service.stop());
  await bounded(systemClock, stopped, systemClock.monotonicMs() + graceMs);
}

export async function runUntilStopped(
  service: Service,
  stopped: Promise<void>,
  { logger, ready }: { readonly logger: Logger; readonly ready: (node: Service) => void },
): Promise<void> {
  ready(service);
  await stopped;
  logger.log("info", { nodeId: service.nodeId }, "draining");
  await service.stop();
  logger.log("info", { nodeId: service.nodeId }, "stopped");
  await logger.flush();
}
