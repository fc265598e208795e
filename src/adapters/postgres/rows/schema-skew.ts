/**
 * Compatibility of programs with a newer schema: one release of skew is allowed. Nodes are upgraded one after the
 * other, so for a while programs of release N work on the schema of release N + 1, and may be restarted on it. A
 * migration declares whether this is safe. Its first lines name the migration that a program must at least have, `--
 * works with: 0037_release_0_1_0.sql`. By convention that is the last migration of the previous release, because only
 * that release's statements were tested with the new schema. The table of applied migrations stores this line, so that
 * a program older than the file can read it. Without the line, no older program may run.
 */
import { SchemaTooNew } from "../../../ports/lease-store.ts";

export interface Applied {
  readonly name: string;
  /**
   * Newest migration of the oldest program that works with this migration; null if every program must know this
   * migration.
   */
  readonly worksWith: string | null;
}

/** A running node, as it registered itself. */
export interface RunningNode {
  readonly nodeId: string;
  readonly version: string;
  readonly knows: string;
}

const WORKS_WITH = /^-- works with: (\d{4}_\w+\.sql)$/m;

/** Reads the declaration of compatible older programs from a migration; null if there is none. */
export function worksWithOf(sql: string): string | null {
  return WORKS_WITH.exec(sql)?.[1] ?? null;
}

/** True if a program whose newest migration is `newest` may work on a schema that has this migration. */
export function suits({ name, worksWith }: Applied, newest: string): boolean {
  return name <= newest || (worksWith ?? name) <= newest;
}

/** Throws if the schema is ahead of a program by more than one release. */
export function refuseTooNew(applied: readonly Applied[], newest: string): void {
  const unsuitable = applied.find((each) => !suits(each, newest));
  if (unsuitable !== undefined) throw new SchemaTooNew(tooNew(unsuitable, newest));
}

export function tooNew({ name, worksWith }: Applied, newest: string): string {
  const needed = worksWith === null ? "" : ` (it works with releases that know ${worksWith})`;
  return `the database has migration ${name}, which is too new for this version${needed}; it knows up to ${newest}: upgrade`;
}

/** Describes in one line the first node that is too old for one of these migrations; null if none is. */
export function leftBehind(pending: readonly Applied[], nodes: readonly RunningNode[]): string | null {
  for (const { nodeId, version, knows } of nodes) {
    const migration = pending.find((each) => !suits(each, knows));
    if (migration === undefined) continue;
    const node = `node ${nodeId} (${version}) runs and knows only ${knows}`;
    return `${node}, but migration ${migration.name} works with ${migration.worksWith ?? "no older release"}: bring it to the release between first, or stop it`;
  }
  return null;
}
