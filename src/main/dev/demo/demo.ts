import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DemoReport } from "../../../adapters/cli/present.ts";
import { systemClock } from "../../../adapters/system/clock.ts";
import type { LaneLease } from "../../../client/index.ts";
import { listenForStop } from "../../stop-signals.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded/postgres.ts";
import { type DevChain, startEmbeddedChain } from "../embedded/start-chain.ts";
import { audit } from "./audit.ts";
import { type Accepted, sendAll } from "./callers.ts";
import { type NodeChild, startNodeChild } from "./node-child.ts";
import { createProgress, type Progress, type ProgressOutput } from "./progress.ts";

type Stage = Awaited<ReturnType<typeof setUp>> & { readonly progress: Progress };

const NODES = 3;
const SIGNERS = 6;
const LEASE_MS = 4_000;
const BLOCK_MS = 200;

/**
 * `fencepost demo`: three nodes on one database and one chain, a thousand transfers, and half-way the worst: the busiest
 * node is killed, another is frozen past its lease and woken again. Then database and chain are compared.
 */
export async function demo(transactions: number, output: ProgressOutput): Promise<DemoReport> {
  const stop = listenForStop();
  const interrupted = stop.received.then(() => Promise.reject(new Error("interrupted; nothing of it is left running")));
  const directory = await mkdtemp(join(tmpdir(), "fencepost-demo-"));
  const undo: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })];
  const progress = createProgress(transactions, output);
  try {
    progress.say(`starting PostgreSQL, an EVM chain and ${NODES} nodes`);
    const stage = { ...(await setUp(directory, undo, stop.signal)), progress };
    return await Promise.race([perform(transactions, stage), interrupted]);
  } finally {
    for (const step of undo) await step().catch(() => undefined);
    stop.dispose();
  }
}

/** Every part that is up when the demo is interrupted is taken down again, last first. */
async function setUp(directory: string, undo: (() => Promise<unknown>)[], signal: AbortSignal) {
  const postgres = await startEmbeddedPostgres({ directory, clock: systemClock, log: () => undefined });
  undo.unshift(() => postgres.stop());
  const chain = await startEmbeddedChain({ blockTimeMs: BLOCK_MS });
  undo.unshift(() => chain.stop());
  const nodes: NodeChild[] = [];
  undo.unshift(() => Promise.all(nodes.filter((node) => node.alive()).map((node) => node.stop())));
  for (let n = 1; n <= NODES && !signal.aborted; n++) {
    nodes.push(await startNodeChild(`node-${n}`, variables(n, postgres, chain)));
  }
  const signers = chain.accounts.slice(0, SIGNERS).map(({ address }) => address);
  return { chain, nodes, signers };
}

function variables(n: number, postgres: EmbeddedPostgres, chain: DevChain): Readonly<Record<string, string>> {
  return {
    FENCEPOST_DATABASE_URL: postgres.url,
    FENCEPOST_RPC_URL: chain.url,
    FENCEPOST_PRIVATE_KEYS: chain.accounts
      .slice(0, SIGNERS)
      .map(({ privateKey }) => privateKey)
      .join(","),
    FENCEPOST_AUTH: "none",
    FENCEPOST_PORT: "0",
    FENCEPOST_NODE_ID: `node-${n}`,
    FENCEPOST_CONFIRMATIONS: "2",
    FENCEPOST_POLL_INTERVAL: "200ms",
    FENCEPOST_LEASE_DURATION: `${LEASE_MS}ms`,
    FENCEPOST_LEASE_RENEW_INTERVAL: "1s",
    FENCEPOST_CLOCK_SKEW_ALLOWANCE: "500ms",
    FENCEPOST_DRAIN_TIMEOUT: "1s",
    FENCEPOST_LOG_LEVEL: "error",
  };
}

async function perform(transactions: number, stage: Stage): Promise<DemoReport> {
  const { chain, nodes, signers, progress } = stage;
  const startedMs = systemClock.monotonicMs();
  const accepted: Accepted[] = [];
  const confirmed = followConfirmed(stage);
  const recipient = (chain.accounts.at(-1) as { address: string }).address;
  const show = () => progress.update(accepted.length, confirmed.count());
  let disaster: Promise<Disaster> | null = null;
  await sendAll({ transactions, signers, recipient, nodes }, (one) => {
    accepted.push(one);
    show();
    if (disaster === null && accepted.length >= transactions / 2) disaster = strike(stage);
  });
  const struck = await (disaster as Promise<Disaster> | null);
  await untilConfirmed(transactions, confirmed, show);
  // The last of them may have come between two looks.
  show();
  confirmed.stop();
  const survivor = nodes.find((node) => node.alive()) as NodeChild;
  const leases = await survivor.client.leases();
  return {
    ...(await audit(survivor.client, chain, accepted)),
    takeovers: sumOfTokens(leases) - (struck?.tokens ?? sumOfTokens(leases)),
    fencedWrites: await fencedWrites(nodes),
    takeOverSeconds: takeOverSeconds(struck, accepted),
    seconds: (systemClock.monotonicMs() - startedMs) / 1_000,
  };
}

/** What does not move for so long is lost, and the table says so. */
const GIVE_UP_MS = 60_000;

async function untilConfirmed(count: number, confirmed: { count(): number }, onLook: () => void): Promise<void> {
  let best = { count: -1, atMs: 0 };
  while (confirmed.count() < count) {
    const nowMs = systemClock.monotonicMs();
    if (confirmed.count() > best.count) best = { count: confirmed.count(), atMs: nowMs };
    if (nowMs - best.atMs > GIVE_UP_MS) return;
    await systemClock.sleep(100);
    onLook();
  }
}

/** Grows by one with every new owner of a lane. */
function sumOfTokens(leases: readonly LaneLease[]): number {
  return leases.reduce((sum, { fencingToken }) => sum + fencingToken, 0);
}

type Disaster = Awaited<ReturnType<typeof strike>>;

/**
 * Kills the node that holds most lanes, and freezes another for longer than its lease. Returns the tokens of all lanes
 * together, as they were before, and the signers that the killed node acted for.
 */
async function strike({ nodes, progress }: Stage) {
  const leases = await (nodes[0] as NodeChild).client.leases();
  const held = (node: NodeChild) => leases.filter(({ nodeId }) => nodeId === node.nodeId);
  const [busiest, frozen] = [...nodes].sort((a, b) => held(b).length - held(a).length) as [NodeChild, NodeChild];
  const orphans = new Set(held(busiest).map(({ signer }) => signer.toLowerCase()));
  busiest.signal("SIGKILL");
  const killedAtMs = systemClock.monotonicMs();
  progress.say(`killed ${busiest.name}, which acted for ${orphans.size} signers (kill -9)`);
  await systemClock.sleep(LEASE_MS);
  frozen.signal("SIGSTOP");
  progress.say(`froze ${frozen.name} past its lease (SIGSTOP)`);
  await systemClock.sleep(LEASE_MS + 2_000);
  frozen.signal("SIGCONT");
  progress.say(`woke ${frozen.name} again: its late writes are refused, it re-joins as a new instance`);
  return { tokens: sumOfTokens(leases), killedAtMs, orphans };
}

function takeOverSeconds(struck: Disaster | null, accepted: readonly Accepted[]): number | null {
  if (struck === null) return null;
  const first = accepted.find(
    ({ signer, atMs }) => atMs > struck.killedAtMs + 50 && struck.orphans.has(signer.toLowerCase()),
  );
  return first === undefined ? null : (first.atMs - struck.killedAtMs) / 1_000;
}

/** Follows the feed of any node that answers. */
function followConfirmed({ nodes }: Stage): { count(): number; stop(): void } {
  const confirmed = new Set<string>();
  const stopped = new AbortController();
  let after = 0;
  const follow = async (): Promise<void> => {
    for (let turn = 0; !stopped.signal.aborted; turn++) {
      const node = nodes[turn % nodes.length] as NodeChild;
      try {
        const page = await node.client.completionsPage(
          { after, limit: 1_000, wait: 1 },
          { signal: AbortSignal.timeout(3_000) },
        );
        for (const { txId, state } of page.items) if (state === "CONFIRMED") confirmed.add(txId);
        after = page.next;
      } catch {
        await systemClock.sleep(100);
      }
    }
  };
  void follow();
  return { count: () => confirmed.size, stop: () => stopped.abort() };
}

async function fencedWrites(nodes: readonly NodeChild[]): Promise<number> {
  let sum = 0;
  for (const node of nodes.filter((each) => each.alive())) {
    const text = await (await fetch(`${node.url}/metrics`)).text();
    sum += Number(/^fencepost_lease_fenced_total (\d+)/m.exec(text)?.[1] ?? 0);
  }
  return sum;
}
