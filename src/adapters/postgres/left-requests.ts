/** LeftRequestStore on PostgreSQL: what nodes leave for the owner of a lane that they cannot ask. */
import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import { ask, type Connections } from "./session/connections.ts";
import { type DurableRuntime, durably } from "./session/durably.ts";
import { asStoreError } from "./session/errors.ts";
import { findWhatWaits } from "./statements/intake.ts";
import {
  answerRequest,
  beginRequests,
  leaveRequest,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "./statements/left-request.ts";
import type { Statement } from "./statements/statement.ts";

/** Each statement but the first stands alone, without BEGIN: one whose answer is lost is found out by the next look. */
export function leftRequestsIn(reading: Connections, leasing: DurableRuntime): LeftRequestStore {
  const { connections } = leasing;
  const change = <Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<readonly Row[]> =>
    connections.use((session) => session.run(statement, values)).catch((error) => Promise.reject(asStoreError(error)));
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
    async whatWaits() {
      const [waits] = await ask(reading, findWhatWaits);
      return waits ?? { intents: false, requests: false };
    },
    async beginRequests(lanes, instanceId, except) {
      const keys = lanes.map(({ chainId, signer }) => `${chainId} ${signer}`);
      const rows = await change(beginRequests, [keys, instanceId, except]);
      return rows.map(({ chainId, signer, ...rest }) => ({ ...rest, lane: { chainId, signer } }));
    },
    answerRequest: async (leftId, instanceId, answer) => {
      await change(answerRequest, [leftId, instanceId, answer]);
    },
    putBackRequest: async (leftId, instanceId) => {
      await change(putBackRequest, [leftId, instanceId]);
    },
    leftStanding: (leftIds) => ask(reading, readLeftRequests, [leftIds]),
    withdrawRequest: async (leftId) => (await change(withdrawRequest, [leftId])).length > 0,
  };
}
