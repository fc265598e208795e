/** `fencepost bench`: measures creates per second and their latency, on an embedded node or on a named one. */
import type { BenchOptions, BenchReport } from "../../../adapters/cli/diagnose.ts";
import { misused } from "../../../adapters/cli/failure.ts";
import { systemClock } from "../../../adapters/system/clock.ts";
import type { Address, FencepostClient } from "../../../client/index.ts";
import { inParallel } from "./audited-load.ts";
import { type NodeChild, withCluster } from "./embedded-cluster.ts";
import type { Progress } from "./progress.ts";

interface Subject {
  readonly name: string;
  readonly client: FencepostClient;
  readonly signers: readonly Address[];
  readonly to: Address;
  /** Gas limit of the transaction, if known: the measurement then excludes the chain's gas estimate. */
  readonly gas?: `${bigint}`;
}

/** Gas of a transfer to an account without code. */
const TRANSFER_GAS = "21000";

interface BenchPorts {
  /** Connects to the node that is measured. */
  connect(): Promise<FencepostClient>;
  readonly progress: Progress;
  newId(): string;
}

/** Runs the benchmark. A chain that costs money is used only if a node and a signer are named. */
export async function bench(options: BenchOptions, ports: BenchPorts): Promise<BenchReport> {
  const { url, profile, signer, to } = options;
  const name = url ?? profile;
  if (name !== undefined) {
    if (signer === undefined) {
      throw misused("--signer is missing: name the signer that pays for the gas of the measured transactions");
    }
    const subject = { name, client: await ports.connect(), signers: [signer], to: to ?? signer };
    return measure(subject, options, ports).finally(ports.progress.end);
  }
  return withCluster({ nodes: 1 }, ports.progress, ({ nodes, signers, recipient }) => {
    const { client } = nodes[0] as NodeChild;
    return measure({ name: "embedded", client, signers, to: recipient, gas: TRANSFER_GAS }, options, ports);
  });
}

async function measure(
  subject: Subject,
  { transactions, callers }: BenchOptions,
  ports: BenchPorts,
): Promise<BenchReport> {
  const { client, signers, to, gas } = subject;
  const payload = { to, value: 0n, ...(gas !== undefined && { gas }) };
  const run = ports.newId();
  const latencies: number[] = [];
  const txIds: string[] = [];
  const failures: unknown[] = [];
  // Warm-up: the first create of a lane loads its nonce and fees and compiles code, so it is not measured.
  for (const signer of signers) await client.send({ signer, requestId: `bench-${run}-warm`, payload });
  const { progress } = ports;
  progress.say(`sending ${transactions} creates, ${callers} at a time`);
  progress.phase("sending");
  const startedMs = systemClock.monotonicMs();
  await inParallel(callers, [0, transactions], async (n) => {
    const signer = signers[n % signers.length] as Address;
    const beganMs = systemClock.monotonicMs();
    const sending = client.send({ signer, requestId: `bench-${run}-${n}`, payload });
    const sent = await sending.catch((error: unknown) => void failures.push(error));
    latencies.push(systemClock.monotonicMs() - beganMs);
    if (sent !== undefined) txIds.push(sent.txId);
    progress.update(txIds.length, 0);
  });
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  if (txIds.length === 0) throw failures[0];
  progress.phase("waiting until they are final");
  const isFinal = await allFinal(client, txIds, (final) => progress.update(txIds.length, final));
  return {
    node: subject.name,
    accepted: txIds.length,
    failed: failures.length,
    seconds,
    createsPerSecond: txIds.length / seconds,
    latencyMs: percentiles(latencies),
    confirmedSeconds: isFinal ? (systemClock.monotonicMs() - startedMs) / 1_000 : null,
  };
}

const PATIENCE_MS = 120_000;

async function allFinal(client: FencepostClient, txIds: readonly string[], onFinal: (count: number) => void) {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  try {
    for (const [at, txId] of txIds.entries()) {
      await client.waitFor(txId, { signal });
      onFinal(at + 1);
    }
    return true;
  } catch {
    return false;
  }
}

function percentiles(latencies: readonly number[]): BenchReport["latencyMs"] {
  const sorted = latencies.toSorted((a, b) => a - b);
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
