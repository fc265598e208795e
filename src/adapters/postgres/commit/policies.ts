/**
 * The policy document in force: read here, changed here, and verified by every commit (commit/commit.ts).
 *
 * Each version of the document has a random id, its stamp. A change locks the document's row, then the lane table, and
 * writes the new stamp to every lane. Lock order: document → lanes. No commit ever waits for the document, so no
 * deadlock is possible.
 */
import { randomUUID } from "node:crypto";
import { inForce, KnownPolicy, type PolicyInForce, type PolicyRecord } from "../../../domain/policy/in-force.ts";
import type { PolicyWords } from "../../../domain/policy/place.ts";
import { StoreUnavailable } from "../../../ports/lane-store.ts";
import type { PolicyChange, PolicyChanged } from "../../../ports/policy-store.ts";
import { ask, type Reading } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import { lockLaneTable } from "../statements/lane.ts";
import { changePolicy, lockPolicy, readPolicy, stampLanes } from "../statements/policy.ts";

const BETWEEN_TRIES_MS = 50;

export class PolicyBook extends KnownPolicy {
  private readonly reading: Reading;
  private readonly words: PolicyWords;
  private last: Promise<unknown> = Promise.resolve();

  constructor(reading: Reading, words: PolicyWords) {
    super();
    this.reading = reading;
    this.words = words;
  }

  /** Reads the policy document. Reads run one after the other, so that an earlier result never replaces a later one. */
  read(): Promise<PolicyInForce> {
    const reading = this.last.then(async () => {
      const [record] = await ask(this.reading, readPolicy());
      return this.take(this.parsed(record));
    });
    this.last = reading.catch(() => undefined);
    return reading;
  }

  /** Reads the policy document again if `stamp`, the id of the version in force, is not the known one. */
  async follow(stamp: string): Promise<void> {
    if (stamp !== this.current.stamp) await this.read();
  }

  /**
   * Changes the policy document. If another commit keeps a lane locked for long, the change is retried, for as long as
   * any other write would be.
   */
  async change(runtime: DurableRuntime, change: PolicyChange): Promise<PolicyChanged> {
    const { clock, patienceMs } = runtime;
    const deadlineMs = clock.monotonicMs() + patienceMs;
    for (;;) {
      try {
        const outcome = await this.changeOnce(runtime, change);
        return { outcome, inForce: await this.read() };
      } catch (error) {
        const isBusy = error instanceof StoreUnavailable && error.busy;
        if (!isBusy || clock.monotonicMs() >= deadlineMs) throw error;
        await clock.sleep(BETWEEN_TRIES_MS);
      }
    }
  }

  private changeOnce(
    runtime: DurableRuntime,
    { policies, actor, reason, nodeId, expectedVersion }: PolicyChange,
  ): Promise<PolicyChanged["outcome"]> {
    return durably(runtime, {
      // Read the document after the locks, in a separate statement: a statement that waited for a lock sees rows from
      // before its wait.
      locks: [lockPolicy(), lockLaneTable()],
      find: [readPolicy()],
      decide: ([[record]]): Decision<PolicyChanged["outcome"]> => {
        const { version, policies: before } = this.parsed(record);
        // Compare the content before the version: if a change is repeated because its response was lost, the document
        // already has this content and the new version.
        if (before?.hash === policies.hash) return { commands: null, result: "unchanged" };
        if (expectedVersion !== null && expectedVersion !== version) return { commands: null, result: "conflict" };
        const stamp = randomUUID();
        const document = JSON.stringify(policies.document);
        const changed = changePolicy(nodeId, policies.hash, document, version + 1, actor, reason, stamp);
        return { commands: [changed, stampLanes(stamp)], result: "changed" };
      },
    });
  }

  private parsed(record: PolicyRecord | undefined) {
    if (record === undefined) throw new StoreUnavailable("the database has no row for the policy document");
    return inForce(record, this.words);
  }
}
