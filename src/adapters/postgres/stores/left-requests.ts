/**
 * Implements LeftRequestStore on PostgreSQL: requests that nodes queue for the owner of a lane if they cannot call it.
 */
import type { LeftRequestStore } from "../../../ports/left-request-store.ts";
import { withLane } from "../rows/columns.ts";
import { intentRow } from "../rows/transaction-fields.ts";
import { ask, type Reading } from "../session/connections.ts";
import type { DurableRuntime } from "../session/durably.ts";
import { asStoreError } from "../session/errors.ts";
import { findWhatWaits } from "../statements/intake.ts";
import * as sql from "../statements/left-request.ts";
import type { Command } from "../statements/statement.ts";
import { write } from "./leases.ts";

/**
 * Stores queued requests. Each statement except the first runs without BEGIN. Otherwise a process paused between two
 * round trips would keep the row locked, and the lane's owner would wait. If a statement's response is lost, the next
 * poll finds its outcome.
 */
export function leftRequestsIn(reading: Reading, leasing: DurableRuntime): LeftRequestStore {
  const change = <Row>(command: Command<Row>) =>
    leasing.connections.use((session) => session.run(command)).catch((error) => Promise.reject(asStoreError(error)));
  return {
    leaveRequests: async (requests, forMs) => {
      const rows = requests.map(({ lane, ...request }) => ({ ...request, ...lane }));
      await write(leasing, sql.leaveRequests(rows, forMs));
    },
    async whatWaits() {
      const [waits] = await ask(reading, findWhatWaits());
      return waits ?? { intents: false, requests: false };
    },
    async beginRequests(lanes, instanceId, except) {
      const keys = lanes.map(({ chainId, signer }) => `${chainId} ${signer}`);
      return (await change(sql.beginRequests(keys, instanceId, except))).map(withLane);
    },
    answerRequest: async (...answer) => void (await change(sql.answerRequest(...answer))),
    putBackRequest: async (...request) => void (await change(sql.putBackRequest(...request))),
    leftStanding: (leftIds) => ask(reading, sql.readLeftRequests(leftIds)),
    withdrawRequest: async (leftId, accepts) => {
      const intents = accepts.map((intent) => intentRow(intent));
      return (await change(sql.withdrawRequest(intents, leftId))).length > 0;
    },
  };
}
