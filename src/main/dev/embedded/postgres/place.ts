import { chmod, chown, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { messageOf } from "../../../../domain/text/thrown.ts";
import { EmbeddedError } from "../embedded-error.ts";
import { type Account, run } from "../processes.ts";

/** Location of the PostgreSQL server's files, and their owner. */
export interface Place {
  /** The requested directory, which contains the lock. */
  readonly directory: string;
  /** Directory of the server's files: usually `directory`; another one if the server's account cannot enter it. */
  readonly home: string;
  /**
   * Account that runs the server; null: the present user. PostgreSQL refuses to run as root, so under root it is
   * another account.
   */
  readonly account: Account | null;
}

/** Directory that survives reboots, unlike /tmp, and is open to every account. */
const SHARED_SPACE = "/var/tmp";
const POINTER = "postgres.location";
const STAND_INS = ["nobody", "postgres", "_postgres"];
/** Highest usable uid: Node passes a child's uid as a signed 32-bit number, and macOS' `nobody` does not fit. */
const HIGHEST_UID = 2 ** 31 - 1;

export async function makeDirectory(directory: string): Promise<string> {
  const path = resolve(directory);
  try {
    const created = await mkdir(path, { recursive: true });
    // Set the mode explicitly: the umask may deny other accounts, and the server's account must enter the directory.
    if (created !== undefined && isRoot()) await chmod(path, 0o755);
    await ignoreInGit(path);
    return path;
  } catch (error) {
    throw new EmbeddedError("DIRECTORY_UNUSABLE", `cannot create ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Keeps the directory out of commits: it contains a database, and its keys in `dev`. A file that exists stays. */
async function ignoreInGit(path: string) {
  await writeFile(join(path, ".gitignore"), "*\n", { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
  });
}

export async function choosePlace(directory: string, log: (line: string) => void): Promise<Place> {
  if (!isRoot()) return { directory, home: directory, account: null };
  const moved = await readPointer(directory);
  const account = await chooseAccount(moved ?? directory);
  if (moved !== null && (await canEnter(moved, account))) return { directory, home: moved, account };
  if (await canEnter(directory, account)) return { directory, home: directory, account };
  return { directory, home: await moveOut(directory, account, log), account };
}

export function isRoot(): boolean {
  return process.geteuid?.() === 0;
}

export async function handOver(path: string, account: Account | null): Promise<void> {
  if (account !== null) await chown(path, account.uid, account.gid);
}

export async function handOverTree(path: string, account: Account | null): Promise<void> {
  if (account === null) return;
  await handOver(path, account);
  for (const entry of await readdir(path, { recursive: true })) await handOver(join(path, entry), account);
}

/**
 * Account that runs the server if this process is root: the owner of existing data, otherwise the owner of the
 * directory, otherwise `nobody`. So in a checkout mounted into a container, the directory's owner can delete the files.
 * The account is looked up by name, because `initdb` requires an account with a name.
 */
async function chooseAccount(home: string): Promise<Account> {
  const owner = (await ownerOf(join(home, "postgres"))) ?? (await ownerOf(home));
  if (owner !== null && (await lookUp(String(owner.uid))) !== null) return owner;
  for (const name of STAND_INS) {
    const account = await lookUp(name);
    if (account !== null) return account;
  }
  const found = "PostgreSQL refuses to run as root and this system has no account 'nobody'";
  throw new EmbeddedError("START_FAILED", `${found}: run as another user, or set a database URL`);
}

async function ownerOf(path: string): Promise<Account | null> {
  const found = await stat(path).catch(() => null);
  return found === null || found.uid === 0 ? null : { uid: found.uid, gid: found.gid };
}

async function lookUp(nameOrUid: string): Promise<Account | null> {
  const [uid, gid] = await Promise.all([run("id", ["-u", nameOrUid]), run("id", ["-g", nameOrUid])]);
  if (uid.code !== 0 || gid.code !== 0) return null;
  const account = { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  return account.uid > 0 && account.uid <= HIGHEST_UID ? account : null;
}

/**
 * True if the account can enter the directory. This is tried as that account, so that the kernel decides: modes of all
 * parents, access lists and mounts count.
 */
async function canEnter(path: string, account: Account) {
  return (await run("/bin/sh", ["-c", 'cd "$1"', "sh", path], account)).code === 0;
}

/**
 * Moves the data to a shared directory: other accounts cannot enter a checkout in /root or a private temporary
 * directory.
 */
async function moveOut(directory: string, account: Account, log: (line: string) => void) {
  const home = await mkdtemp(join(SHARED_SPACE, "fencepost-"));
  await handOver(home, account);
  await writeFile(join(directory, POINTER), home);
  log(`PostgreSQL runs as uid ${account.uid}, which cannot enter ${directory}: its files are in ${home}`);
  return home;
}

async function readPointer(directory: string) {
  const home = await readFile(join(directory, POINTER), "utf8").catch(() => "");
  return home.startsWith(`${SHARED_SPACE}/`) ? home : null;
}
