/** Implements SubscriberStore on PostgreSQL. */
import type { Subscriber } from "../../../domain/webhooks/subscriber.ts";
import { InstanceOver } from "../../../ports/lease-store.ts";
import type {
  ClaimedSubscriber,
  SeenSubscriber,
  SubscriberChange,
  SubscriberRecord,
  SubscriberStore,
} from "../../../ports/subscriber-store.ts";
import { ask, type Reading } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import type { Decision } from "../session/write-transaction.ts";
import { readInstance } from "../statements/node-instance.ts";
import * as sql from "../statements/subscriber.ts";
import { writeLease, writeRows } from "./leases.ts";

/**
 * `delivering`: connections for claims and progress, which must not be those of leases or commits. `leasing`: those for
 * changes by people.
 */
export function subscribersIn(reading: Reading, leasing: DurableRuntime, delivering: DurableRuntime): SubscriberStore {
  return {
    subscribers: async () => (await ask(reading, sql.listSubscribers())).map(recordOf),
    async addSubscriber({ subscriberId, name, url, filter, secretId, after, giveUpAfterMs, createdBy }, actor) {
      const { signers, chains, keys, states } = filter;
      const values = [
        subscriberId,
        name,
        url,
        signers,
        chains,
        keys,
        states,
        secretId,
        after,
        giveUpAfterMs,
        createdBy,
      ];
      const [row] = await writeRows(leasing, sql.insertSubscriber(actor, null, ...values));
      return row?.result ?? "taken";
    },
    changeSubscriber: async ({ seen, change, actor, reason }) =>
      (await writeRows(leasing, commandFor(change, [actor, reason, ...valuesOf(seen)]))).length > 0,
    removeSubscriber: async (seen, actor) =>
      (await writeRows(leasing, sql.removeSubscriber(actor, null, ...valuesOf(seen)))).length > 0,
    async claimSubscribers(subscriberIds, instanceId) {
      if (subscriberIds.length === 0) return [];
      const held = await writeLease(delivering, {
        waits: 1,
        find: [sql.pickSubscribers(subscriberIds, instanceId), readInstance(instanceId)],
        decide: ([picked, [claimant]]): Decision<readonly string[]> => {
          if (claimant?.alive !== true) throw new InstanceOver(instanceId);
          const taken = picked.filter(({ kept }) => !kept);
          const result = picked.map(({ subscriberId }) => subscriberId);
          return { commands: taken.length === 0 ? null : [sql.takeSubscribers(taken, instanceId)], result };
        },
      });
      const rows = held.length === 0 ? [] : await ask(reading, sql.readOwnSubscribers(held, instanceId));
      return rows.map(({ done, ...row }): ClaimedSubscriber => {
        const { subscriberId, token } = row;
        return { subscriber: subscriberOf(row), term: { subscriberId, instanceId, token }, done };
      });
    },
    async writeDeliveries(progress, instanceId) {
      if (progress.length === 0) return new Set();
      const rows = progress.map(({ term, done, lastAnswer, paused, ...rest }) => ({
        ...rest,
        subscriberId: term.subscriberId,
        token: term.token,
        done: `{${done}}`,
        lastStatus: lastAnswer?.status ?? null,
        lastReason: lastAnswer?.reason ?? null,
        lastAt: lastAnswer?.at ?? null,
        pausedBy: paused?.by ?? null,
        pausedWhy: paused?.why ?? null,
      }));
      const written = await writeRows(delivering, sql.writeDeliveries(rows, instanceId));
      return new Set(written.map(({ subscriberId }) => subscriberId));
    },
  };
}

function valuesOf({ subscriberId, filter: { signers, chains, keys, states } }: SeenSubscriber) {
  return [subscriberId, signers, chains, keys, states] as const;
}

function commandFor(change: SubscriberChange, by: readonly [string, string | null, ...ReturnType<typeof valuesOf>]) {
  switch (change.action) {
    case "pause":
      return sql.pauseSubscriber(...by);
    case "resume":
      return sql.resumeSubscriber(...by);
    case "replay":
      return sql.replaySubscriber(...by, change.after);
    case "rotate":
      return sql.rotateSubscriber(...by, change.generation, change.secretId, change.overlapMs);
    default: {
      const { url = null, filter, giveUpAfterMs = null } = change;
      const { signers = null, chains = null, keys = null, states = null } = filter ?? {};
      const given = [filter !== undefined, signers, chains, keys, states];
      return sql.changeSubscriber(...by, url, ...given, giveUpAfterMs);
    }
  }
}

function recordOf({ instanceId, nodeId, behind, behindSince, readAt, ...row }: sql.ListedRow): SubscriberRecord {
  const owner = instanceId === null || nodeId === null ? null : { instanceId, nodeId };
  return { ...subscriberOf(row), token: row.token, owner, behind, behindSince, readAt };
}

function subscriberOf(row: sql.SubscriberRow): Subscriber {
  const { signers, chains, keys, states, pausedBy, pausedWhy, pausedAt, lastStatus, lastReason, lastAt, ...same } = row;
  const { token: _, ...rest } = same;
  return {
    ...rest,
    filter: { signers, chains, keys, states },
    paused:
      pausedBy === null || pausedWhy === null || pausedAt === null
        ? null
        : { by: pausedBy, why: pausedWhy, at: pausedAt },
    lastAnswer: lastAt === null ? null : { status: lastStatus, reason: lastReason, at: lastAt },
  };
}
