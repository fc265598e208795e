import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { EmbeddedError } from "../embedded-error.ts";
import { CHILD_ENVIRONMENT, launch } from "../processes.ts";
import type { Binaries } from "./binaries.ts";
import { handOverTree, type Place } from "./place.ts";

export const SUPERUSER = "fencepost";

/** A checked PostgreSQL data directory: complete, and of the right version. */
export type Cluster = Awaited<ReturnType<typeof openCluster>>;

export interface ClusterRequest {
  readonly place: Place;
  readonly binaries: Binaries;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal | undefined;
}

const DRAFT = "postgres.draft-";

/**
 * Opens or creates the PostgreSQL data directory. A new one is created under a temporary name, with its password
 * inside, and renamed when complete. So an interrupted `initdb` never leaves half a database, only a temporary
 * directory that the next start deletes.
 */
export async function openCluster(request: ClusterRequest) {
  const root = join(request.place.home, "postgres");
  await sweepDrafts(request.place.home);
  if (existsSync(root)) await assertUsable(root, request);
  else await create(root, request);
  return {
    // Resolve links: the server reports its directory with links resolved, and the check for leftover servers compares
    // with that.
    data: await realpath(join(root, "data")),
    logFile: join(root, "server.log"),
    password: await readPassword(root),
  };
}

async function sweepDrafts(home: string) {
  for (const name of await readdir(home)) {
    if (name.startsWith(DRAFT)) await rm(join(home, name), { recursive: true, force: true, maxRetries: 5 });
  }
}

async function assertUsable(root: string, { binaries, place }: ClusterRequest) {
  const { uid } = await stat(root);
  const runsAs = place.account?.uid ?? process.geteuid?.();
  if (place.account !== null && uid !== runsAs) await handOverTree(root, place.account);
  else if (uid !== runsAs) {
    throw unusable(`${root} belongs to uid ${uid}: run as that user, or remove it to start afresh`);
  }
  const version = await readFile(join(root, "data", "PG_VERSION"), "utf8").catch(() => null);
  if (version === null) throw unusable(`${root} holds no PostgreSQL database: remove it to start afresh`);
  if (Number.parseInt(version, 10) !== binaries.major) {
    const found = `the database in ${root} was made by PostgreSQL ${version.trim()}, this is ${binaries.version}`;
    throw new EmbeddedError("OTHER_VERSION", `${found}: remove it to start afresh, or use the old version`);
  }
}

async function create(root: string, request: ClusterRequest) {
  const { place, log } = request;
  log(`creating a PostgreSQL ${request.binaries.version} database in ${root}`);
  const draft = await mkdtemp(join(place.home, DRAFT));
  try {
    await mkdir(join(draft, "data"), { mode: 0o700 });
    await writeFile(join(draft, "password"), randomBytes(24).toString("hex"), { mode: 0o600 });
    await handOverTree(draft, place.account);
    await initdb(draft, request);
    await rename(draft, root);
  } catch (error) {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 });
    throw error;
  }
}

/** Runs `initdb` without fsync: a power cut in these 0.7 s loses an empty database, which is created again. */
async function initdb(draft: string, { binaries, place, signal }: ClusterRequest) {
  const command = [
    binaries.initdb,
    `--pgdata=${join(draft, "data")}`,
    `--username=${SUPERUSER}`,
    `--pwfile=${join(draft, "password")}`,
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--no-sync",
  ];
  signal?.throwIfAborted();
  const options = { ...place.account, cwd: "/", env: CHILD_ENVIRONMENT };
  const { handle, ended } = launch(command, { ...options, stdio: ["ignore", "ignore", "pipe"] }, "TERM");
  const abort = () => void handle.kill("SIGTERM");
  signal?.addEventListener("abort", abort, { once: true });
  const { code, error, how, stderr } = await ended;
  signal?.removeEventListener("abort", abort);
  signal?.throwIfAborted();
  if (error !== undefined) throw error;
  if (code === 0) return;
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const complaint = lines.find((line) => /error|fatal|could not/i.test(line)) ?? lines[0] ?? how;
  throw new EmbeddedError("START_FAILED", `initdb failed: ${complaint}`);
}

async function readPassword(root: string) {
  const text = await readFile(join(root, "password"), "utf8").catch(() => {
    throw unusable(`the password file in ${root} is missing: remove the directory to start afresh`);
  });
  return text.trim();
}

function unusable(message: string) {
  return new EmbeddedError("DIRECTORY_UNUSABLE", message);
}
