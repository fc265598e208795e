import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { chmod, chown, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { freePort } from "../../src/main/dev/embedded/loopback-port.ts";
import { POSTGRES_15 } from "./postgres-15.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { makeTemporaryDirectory } from "./temporary-directory.ts";
import { waitUntil } from "./wait-until.ts";

const PATRONI = "/usr/bin/patroni";
const ETCD = "/usr/bin/etcd";

export const hasPatroni = [PATRONI, ETCD, join(POSTGRES_15, "bin", "postgres")].every((path) => existsSync(path));
export const NO_PATRONI = "no patroni, etcd and PostgreSQL 15 are installed: failover by Patroni stays untested";

/** Two servers under Patroni, behind an address that follows the leader as HAProxy does. */
export interface PatroniCluster {
  readonly url: string;
  /** From now on the standby receives nothing more. */
  partStandby(): Promise<void>;
  /** Kills the leader's Patroni and PostgreSQL with kill −9; resolves when the address leads to the new leader. */
  killLeader(): Promise<void>;
  remove(): Promise<void>;
}

interface Member {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly data: string;
  readonly child: ChildProcess;
}

const NOBODY = 65_534;
const SLOW = { everyMs: 100, giveUpMs: 90_000 };
const asNobody = process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {};

export async function startPatroniCluster({ synchronous }: { synchronous: boolean }): Promise<PatroniCluster> {
  const directory = await makeTemporaryDirectory();
  await chmod(directory.path, 0o755);
  const { etcd, etcdPort } = await startEtcd(directory.path);
  const members: Member[] = [];
  for (const name of ["one", "two"]) members.push(await startMember(directory.path, { name, etcdPort, synchronous }));
  let leader = await waitUntil(() => leaderOf(members), "there is a leader", SLOW);
  const state = synchronous ? "sync" : "async";
  await waitUntil(async () => (await senders(leader, state)).length > 0, `it has a standby (${state})`, SLOW);
  const parted: number[] = [];
  const address = await TcpProxy.start(leader.port);
  return {
    url: address.through(urlOf(leader.port)),
    partStandby: async () => {
      for (const pid of await senders(leader, state)) {
        process.kill(pid, "SIGSTOP");
        parted.push(pid);
      }
    },
    killLeader: async () => {
      const left = members.filter((member) => member !== leader);
      address.refuse();
      await kill(leader);
      for (const pid of parted.splice(0)) process.kill(pid, "SIGKILL");
      address.cut();
      leader = await waitUntil(() => leaderOf(left), "there is another leader", SLOW);
      address.upstreamPort = leader.port;
      address.admit();
    },
    remove: async () => {
      await address.close();
      for (const member of members) await kill(member);
      etcd.kill("SIGKILL");
      await directory.remove();
    },
  };
}

async function startEtcd(root: string): Promise<{ readonly etcd: ChildProcess; readonly etcdPort: number }> {
  const [etcdPort, peerPort] = [await freePort(), await freePort()];
  const [client, peer] = [`http://127.0.0.1:${etcdPort}`, `http://127.0.0.1:${peerPort}`];
  const etcd = spawn(
    ETCD,
    [
      ...["--data-dir", join(root, "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client],
      ...["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", `default=${peer}`],
    ],
    { stdio: "ignore" },
  );
  await waitUntil(() => answers(`${client}/health`), "etcd answers", SLOW);
  return { etcd, etcdPort };
}

async function startMember(
  root: string,
  { name, ...settings }: Pick<MemberSettings, "name" | "etcdPort" | "synchronous">,
): Promise<Member> {
  const [port, restPort] = [await freePort(), await freePort()];
  const home = join(root, name);
  const data = join(home, "data");
  await mkdir(home, { mode: 0o700 });
  await writeFile(join(home, "patroni.yml"), configuration({ ...settings, name, port, restPort, data }));
  if (asNobody.uid !== undefined) await chown(home, asNobody.uid, asNobody.gid);
  await chmod(join(home, "patroni.yml"), 0o644);
  const child = spawn(PATRONI, [join(home, "patroni.yml")], { ...asNobody, cwd: "/", stdio: "ignore" });
  return { name, port, restPort, data, child };
}

interface MemberSettings {
  readonly name: string;
  readonly port: number;
  readonly restPort: number;
  readonly data: string;
  readonly etcdPort: number;
  readonly synchronous: boolean;
}

function configuration({ name, port, restPort, data, etcdPort, synchronous }: MemberSettings): string {
  return `scope: fencepost
name: ${name}
restapi: { listen: "127.0.0.1:${restPort}", connect_address: "127.0.0.1:${restPort}" }
etcd3: { host: "127.0.0.1:${etcdPort}" }
bootstrap:
  dcs: { ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: ${synchronous} }
  initdb: [ { encoding: UTF8 }, { locale: C } ]
  pg_hba: [ "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust" ]
postgresql:
  listen: "127.0.0.1:${port}"
  connect_address: "127.0.0.1:${port}"
  data_dir: ${data}
  bin_dir: ${join(POSTGRES_15, "bin")}
  pgpass: ${data}.pgpass
  parameters: { unix_socket_directories: "${join(data, "..")}" }
  authentication: { superuser: { username: postgres }, replication: { username: replicator } }
`;
}

async function leaderOf(members: readonly Member[]): Promise<Member | null> {
  for (const member of members) if (await answers(`http://127.0.0.1:${member.restPort}/primary`)) return member;
  return null;
}

function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** Processes of the leader that send its log to standbys in this state. */
async function senders({ port }: Member, state: "sync" | "async"): Promise<readonly number[]> {
  const client = new Client({ connectionString: urlOf(port) });
  client.on("error", () => undefined);
  try {
    await client.connect();
    const sql = "SELECT pid FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = $1";
    return (await client.query<{ pid: number }>(sql, [state])).rows.map(({ pid }) => pid);
  } catch {
    return [];
  } finally {
    await client.end().catch(() => undefined);
  }
}

function urlOf(port: number): string {
  return `postgres://postgres@127.0.0.1:${port}/postgres`;
}

/** Kills Patroni and its PostgreSQL. Patroni comes first, because it would restart PostgreSQL. */
async function kill({ child, data }: Member): Promise<void> {
  const exited = child.exitCode !== null || child.signalCode !== null;
  if (!exited) {
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await gone;
  }
  const pid = Number.parseInt(await readFile(join(data, "postmaster.pid"), "utf8").catch(() => ""), 10);
  try {
    if (pid > 0) process.kill(pid, "SIGQUIT");
  } catch {
    // Ignore the error: the server had already ended.
  }
}
