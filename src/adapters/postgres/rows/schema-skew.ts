/**
 * One release of skew. Nodes are upgraded one after the other, so for a while programs of release N work on the schema of
 * release N + 1, and may be restarted on it. What makes that safe is said by the migration, not guessed from numbers: its
 * first lines name the newest migration that a program must know at least, `-- works with: 0037_release_0_1_0.sql`. By
 * our rule that is the last one of the release before, because only that one's statements were tried on it. The ledger
 * keeps the word, so that also a program that is older than the file can read it. Without it, no older program may.
 */
import { SchemaTooNew } from "../../../ports/lease-store.ts";

export interface Applied {
  readonly name: string;
  /** Null: works with no program that does not know it. */
  readonly worksWith: string | null;
}

/** A node that runs, by its own word. */
export interface RunningNode {
  readonly nodeId: string;
  readonly version: string;
  readonly knows: string;
}

const WORKS_WITH = /^-- works with: (\d{4}_\w+\.sql)$/m;

/** The older programs that a migration works with. */
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

/** The first node that could not follow one of these migrations, in one line; null if all can. */
export function leftBehind(pending: readonly Applied[], nodes: readonly RunningNode[]): string | null {
  for (const { nodeId, version, knows } of nodes) {
    const migration = pending.find((each) => !suits(each, knows));
    if (migration === undefined) continue;
    const node = `node ${nodeId} (${version}) runs and knows only ${knows}`;
    return `${node}, but migration ${migration.name} works with ${migration.worksWith ?? "no older release"}: bring it to the release between first, or stop it`;
  }
  return null;
}
