import { constants } from "node:fs";
import { access, open, readFile } from "node:fs/promises";
import { codeOf } from "../../../domain/thrown.ts";
import { BadKey } from "./private-keys.ts";

/** Told what is not right and cannot be repaired from here. */
export type Warn = (line: string) => void;

/** Group or others may read or write it. */
const OPEN_TO_OTHERS = 0o066;

/** Reads a file that holds a key or a password. `what` names it in errors. */
export async function readSecretFile(path: string, what: string, warn: Warn = () => undefined): Promise<string> {
  const unreadable = refusing(path, what);
  // Judged and read through one handle: what is judged is what is read.
  const file = await open(path, "r").catch(unreadable);
  try {
    const { uid, mode } = await file.stat();
    const judgement = judgeOpenness({ uid, mode, ownUid: process.getuid?.(), readOnly: await isReadOnly(path) });
    const octal = (mode & 0o777).toString(8).padStart(4, "0");
    const said = `${path}: the ${what} is open to other users of this machine (mode ${octal})`;
    if (judgement === "refused") throw new BadKey(`${said}; make it yours alone: chmod 600 ${path}`);
    if (judgement === "warned")
      warn(`${said}; it belongs to somebody else, or is mounted read-only, and is used all the same`);
    return await file.readFile("utf8").catch(unreadable);
  } finally {
    await file.close();
  }
}

/** Reads a file that anybody may read. */
export async function readWhole(path: string, what: string): Promise<string> {
  return readFile(path, "utf8").catch(refusing(path, what));
}

function refusing(path: string, what: string): (cause: unknown) => never {
  return (cause) => {
    throw new BadKey(`${path}: the ${what} cannot be read (${codeOf(cause) ?? "unknown"})`, { cause });
  };
}

export interface Openness {
  readonly uid: number;
  readonly mode: number;
  /** Undefined where the system has no such thing (Windows). */
  readonly ownUid: number | undefined;
  /** The file system takes no changes. */
  readonly readOnly: boolean;
}

/**
 * ssh refuses a key that others can read, whoever it belongs to. Secrets that Kubernetes and Docker mount are exactly that
 * (0644 or 0444, root's, on a read-only mount), and no one in the container can change it. So what this process could
 * repair is refused, and what it could not is said aloud. What others may write is never right where it can be written.
 */
export function judgeOpenness({ uid, mode, ownUid, readOnly }: Openness): "fine" | "warned" | "refused" {
  if (ownUid === undefined || (mode & OPEN_TO_OTHERS) === 0) return "fine";
  if (readOnly) return "warned";
  return uid === ownUid || (mode & 0o022) !== 0 ? "refused" : "warned";
}

async function isReadOnly(path: string): Promise<boolean> {
  return access(path, constants.W_OK).then(
    () => false,
    (error: unknown) => codeOf(error) === "EROFS",
  );
}
