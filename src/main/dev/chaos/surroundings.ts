/** Everything between the nodes and the rest: wires, endpoints, clocks, a pooler, and the receiver of webhooks. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Pool } from "pg";
import type { Clock } from "../../../ports/clock.ts";
import type { ClusterParts } from "../demo/embedded-cluster.ts";
import { freePort, LOOPBACK } from "../embedded/loopback-port.ts";
import type { DevChain } from "../embedded/start-chain.ts";
import type { Variables } from "../node-process.ts";
import type { Dice } from "./dice.ts";
import { type Arrival, openEndpoint } from "./endpoint.ts";
import type { Query } from "./facts.ts";
import { DEEPEST_REORG } from "./faults.ts";
import { KEYS } from "./load.ts";
import { startPooler } from "./pooler.ts";
import { openSubscriber } from "./subscriber.ts";
import { openWallClock } from "./wall-clock.ts";
import { openWire, type WireState } from "./wire.ts";

/** A database that crashed is back after seconds. */
const MOST_ATTEMPTS = 300;
const AGAIN_MS = 100;

const OF_EVERY_NODE: Variables = {
  FENCEPOST_CONFIRMATIONS: String(DEEPEST_REORG + 1),
  FENCEPOST_AUTH: "keys",
  FENCEPOST_API_KEYS: Object.values(KEYS)
    .map(({ name, secret, scopes }) => `${name}:${secret}:${scopes}`)
    .join(","),
  FENCEPOST_CLUSTER_SECRET: "a-cluster-secret-of-this-campaign",
  FENCEPOST_HOOK_NETWORKS: LOOPBACK,
  FENCEPOST_RESUBMIT_INTERVAL: "2s",
  FENCEPOST_NONCE_STATE_TIMEOUT: "5s",
  FENCEPOST_STALE_RECEIPT_TIMEOUT: "5s",
  FENCEPOST_MAX_FEE_GWEI: "400",
};

export type Surroundings = Awaited<ReturnType<typeof openSurroundings>>;

export interface SurroundingsPlan {
  readonly clock: Clock;
  readonly dice: Dice;
  readonly nodes: number;
  /** The program `pgbouncer`; every second node then goes through it. */
  readonly pooler?: string | undefined;
  /** Policies of the nodes' configuration. */
  readonly policies: object;
  /** Receives what closes each part; the last part is closed first. */
  readonly closing: (() => Promise<unknown>)[];
}

export async function openSurroundings(plan: SurroundingsPlan, { database, chain }: ClusterParts) {
  const { clock, dice, nodes, pooler: program, policies, closing } = plan;
  const arrivals: Arrival[] = [];
  const directory = await mkdtemp(join(tmpdir(), "fencepost-chaos-"));
  closing.push(() => rm(directory, { recursive: true, force: true }));
  const query = openQuery(database, plan);
  const subscriber = await openSubscriber(clock, dice);
  closing.push(() => subscriber.close());
  const pooler = program === undefined ? null : await startPooler(clock, { program, databaseUrl: database });
  if (pooler !== null) closing.push(() => pooler.stop());

  const surround = async (name: string, through: string) => {
    const port = await freePort();
    const wires = {
      database: await openWire(clock, portIn(through)),
      direct: await openWire(clock, portIn(database)),
      peers: await openWire(clock, () => port),
    };
    const wallClock = await openWallClock(join(directory, `${name}.clock`));
    const upstream = {
      ask: (method: string, params: readonly unknown[]) => answerOf(chain, method, params),
      arrived: (arrival: Arrival) => void arrivals.push(arrival),
    };
    const endpoints = [await openEndpoint(clock, name, upstream), await openEndpoint(clock, name, upstream)] as const;
    for (const each of [...Object.values(wires), ...endpoints]) closing.push(() => each.close());
    // A fault on the connections through the pooler strikes those past it too.
    const become = (state: Partial<WireState>) => {
      wires.database.become(state);
      wires.direct.become(state);
    };
    const variables: Variables = {
      ...wallClock.variables,
      FENCEPOST_DATABASE_URL: onPort(through, wires.database.port),
      FENCEPOST_DIRECT_DATABASE_URL: onPort(database, wires.direct.port),
      FENCEPOST_RPC_URL: endpoints.map((each) => each.url).join(","),
      FENCEPOST_PORT: String(port),
      FENCEPOST_ADVERTISE_URL: `http://${LOOPBACK}:${wires.peers.port}`,
      FENCEPOST_POLICIES: JSON.stringify(policies),
      ...OF_EVERY_NODE,
    };
    return { variables, parts: { database: { become }, peers: wires.peers, endpoints, clock: wallClock } };
  };

  const nodesOf = new Map<string, Awaited<ReturnType<typeof surround>>>();
  for (let n = 1; n <= nodes; n++) {
    const through = pooler !== null && n % 2 === 0 ? pooler.url : database;
    nodesOf.set(`node-${n}`, await surround(`node-${n}`, through));
  }
  /** Variables, wires, endpoints and clock of a node, by its name. */
  const of = (name: string) => {
    const found = nodesOf.get(name);
    if (found === undefined) throw new Error(`there is no node ${name}`);
    return found;
  };
  return { arrivals, subscriber, query, of };
}

/** Repeats a query that fails: a fault may terminate these backends too. */
function openQuery(database: string, { clock, closing }: Pick<SurroundingsPlan, "clock" | "closing">): Query {
  const pool = new Pool({ connectionString: database, max: 2 });
  pool.on("error", () => undefined);
  closing.push(() => pool.end());
  return async (sql, values = []) => {
    for (let attempt = 0; ; attempt++) {
      try {
        return (await pool.query(sql, [...values])).rows;
      } catch (error) {
        if (attempt > MOST_ATTEMPTS) throw error;
        await clock.sleep(AGAIN_MS);
      }
    }
  };
}

/** The chain's response to a JSON-RPC request, with its error if it refused. */
async function answerOf(chain: DevChain, method: string, params: readonly unknown[]) {
  try {
    return { result: await chain.rpc(method, params) };
  } catch (error) {
    const { code = -32_000, message } = error as { readonly code?: number; readonly message: string };
    return { error: { code, message } };
  }
}

const portIn = (url: string) => () => Number(new URL(url).port);

function onPort(url: string, port: number): string {
  const changed = new URL(url);
  changed.port = String(port);
  return changed.href;
}
