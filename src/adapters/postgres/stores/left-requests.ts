/** LeftRequestStore on PostgreSQL: requests that nodes enqueue for the owner of a lane that has no URL. */
import type { LeftRequestStore } from "../../../ports/left-request-store.ts";
import { laneOf, recordset, rowsOf } from "../rows/columns.ts";
import { intentRow } from "../rows/transaction-fields.ts";
import { ask, type Connections } from "../session/connections.ts";
import { type DurableRuntime, durably } from "../session/durably.ts";
import { asStoreError } from "../session/errors.ts";
import { findWhatWaits } from "../statements/intake.ts";
import {
  answerRequest,
  beginRequests,
  leaveRequests,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "../statements/left-request.ts";
import type { Statement } from "../statements/statement.ts";

/**
 * Each statement but the first runs without BEGIN: a process that was paused between two round trips would hold the row, and
 * its owner would wait. The next look finds out about a statement whose answer was lost.
 */
export function leftRequestsIn(reading: Connections, leasing: DurableRuntime): LeftRequestStore {
  const { connections } = leasing;
  const change = <Row>(statement: Statement<Row>, values: readonly unknown[]): Promise<readonly Row[]> =>
    connections.use((session) => session.run(statement, values)).catch((error) => Promise.reject(asStoreError(error)));
  return {
    leaveRequests: (requests, forMs) => {
      const rows = requests.map(({ lane, ...request }, place) => ({ place, ...laneOf(lane), ...request }));
      return durably(leasing, {
        statements: 0,
        waits: 0,
        find: async () => undefined,
        decide: () => ({
          commands: [{ statement: leaveRequests, values: [recordset(rows), forMs] }],
          result: undefined,
        }),
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
    withdrawRequest: async (leftId, accepts) => {
      const values = rowsOf(
        withdrawRequest,
        accepts.map((intent) => intentRow(intent)),
        leftId,
      );
      return (await change(withdrawRequest, values)).length > 0;
    },
  };
}
