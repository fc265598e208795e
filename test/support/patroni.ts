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

/** Two servers under Patroni with a synchronous standby, behind an address that follows the leader as HAProxy does. */
export interface PatroniCluster {
  readonly url: string;
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

export async function startPatroniCluster(): Promise<PatroniCluster> {
  const directory = await makeTemporaryDirectory();
  await chmod(directory.path, 0o755);
  const { etcd, etcdPort } = await startEtcd(directory.path);
  const members: Member[] = [];
  for (const name of ["one", "two"]) members.push(await startMember(directory.path, name, etcdPort));
  let leader = await waitUntil(() => leaderOf(members), "there is a leader", SLOW);
  await waitUntil(() => hasSynchronousStandby(urlOf(leader.port)), "it has a synchronous standby", SLOW);
  const address = await TcpProxy.start(leader.port);
  return {
    url: address.through(urlOf(leader.port)),
    killLeader: async () => {
      const left = members.filter((member) => member !== leader);
      address.refuse();
      await kill(leader);
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

async function startMember(root: string, name: string, etcdPort: number): Promise<Member> {
  const [port, restPort] = [await freePort(), await freePort()];
  const home = join(root, name);
  const data = join(home, "data");
  await mkdir(home, { mode: 0o700 });
  await writeFile(join(home, "patroni.yml"), configuration({ name, port, restPort, data, etcdPort }));
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
}

function configuration({ name, port, restPort, data, etcdPort }: MemberSettings): string {
  return `scope: fencepost
name: ${name}
restapi: { listen: "127.0.0.1:${restPort}", connect_address: "127.0.0.1:${restPort}" }
etcd3: { host: "127.0.0.1:${etcdPort}" }
bootstrap:
  dcs: { ttl: 20, loop_wait: 1, retry_timeout: 3, synchronous_mode: true }
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

async function hasSynchronousStandby(connectionString: string): Promise<boolean> {
  const client = new Client({ connectionString });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return (await client.query("SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'")).rows.length > 0;
  } catch {
    return false;
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
