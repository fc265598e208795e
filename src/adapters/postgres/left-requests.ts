/** LeftRequestStore on PostgreSQL: requests that nodes enqueue for the owner of a lane that has no URL. */
import type { Intent } from "../../domain/transaction.ts";
import type { LeftRequestStore } from "../../ports/left-request-store.ts";
import { bare, laneOf, payloadValues, recordset } from "./columns.ts";
import { ask, type Connections } from "./session/connections.ts";
import { type DurableRuntime, durably } from "./session/durably.ts";
import { asStoreError } from "./session/errors.ts";
import { findWhatWaits } from "./statements/intake.ts";
import {
  answerRequest,
  beginRequests,
  leaveRequests,
  putBackRequest,
  readLeftRequests,
  withdrawRequest,
} from "./statements/left-request.ts";
import type { Statement } from "./statements/statement.ts";

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
      const rows = accepts.map(intakeRow);
      return (await change(withdrawRequest, [leftId, recordset(rows)])).length > 0;
    },
  };
}

function intakeRow({ txId, lane, requestId, owner, payload, metadata, ...more }: Intent, index: number) {
  const { fingerprint, allowNoCode = false, validUntil } = more;
  const said = { ...payloadValues(payload), metadata, fingerprint: bare(fingerprint), allowNoCode, validUntil };
  return { place: index, txId, ...laneOf(lane), requestId, owner, ...said };
}
