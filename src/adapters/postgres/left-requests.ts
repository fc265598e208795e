/** LeftRequestStore on PostgreSQL: what nodes leave for the owner of a lane that they cannot ask. */
import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import { ask } from "./session/connections.ts";
import { type DurableRuntime, durably } from "./session/durably.ts";
import {
  answerRequest,
  beginRequests,
  hasLeftRequests,
  leaveRequest,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "./statements/left-request.ts";

/** Each statement but the first stands alone: one whose answer is lost is found out by the next look. */
export function leftRequestsIn(leasing: DurableRuntime): LeftRequestStore {
  const { connections } = leasing;
  return {
    leaveRequest: ({ leftId, lane, action, body, owner, repeatable }, forMs) => {
      const values = [leftId, lane.chainId, lane.signer, action, body, owner, repeatable, forMs];
      return durably(leasing, {
        statements: 0,
        waits: 0,
        find: async () => undefined,
        decide: () => ({ commands: [{ statement: leaveRequest, values }], result: undefined }),
      });
    },
    hasLeftRequests: async () => (await ask(connections, hasLeftRequests))[0]?.waits === true,
    async beginRequests(lanes, instanceId, except) {
      const keys = [lanes.map(({ chainId }) => chainId), lanes.map(({ signer }) => signer)];
      const rows = await ask(connections, beginRequests, [...keys, instanceId, except]);
      return rows.map(({ chainId, signer, ...rest }) => ({ ...rest, lane: { chainId, signer } }));
    },
    answerRequest: async (leftId, instanceId, answer) => {
      await ask(connections, answerRequest, [leftId, instanceId, answer]);
    },
    putBackRequest: async (leftId, instanceId) => {
      await ask(connections, putBackRequest, [leftId, instanceId]);
    },
    leftStanding: (leftIds) => ask(connections, readLeftRequests, [leftIds]),
    withdrawRequest: async (leftId) => (await ask(connections, withdrawRequest, [leftId])).length > 0,
  };
}
