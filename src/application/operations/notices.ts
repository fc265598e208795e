/**
 * Acknowledges a notice: who looked into it, when and why. Any node does it: no lane's data changes, so nothing is
 * forwarded to an owner, and a notice about a lane without an owner can be acknowledged as well.
 *
 * Reads and writes: one notice. A crash leaves it acknowledged, or not; a repeat under the same key shows which.
 */

import type { AcknowledgeVerdict, Notice } from "../../domain/cluster/notices.ts";
import { type ErrorCode, FencepostError, invalid, orDatabaseSilent } from "../../domain/errors.ts";
import { isLimited, isWithin, type Limits } from "../../domain/keys/principal.ts";
import type { Ports } from "../../ports/ports.ts";
import type { NoticeActionRequest } from "../api.ts";
import { parseActionKey, parseReason } from "../requests/action.ts";
import { asObject, refuseUnknownKeys, UUID } from "../requests/fields.ts";

export function noticeOperations({ store }: Pick<Ports, "store">) {
  return {
    /**
     * Records who looked into a notice, and why it needs no further attention. CONFLICT if it was acknowledged by
     * another request, or if `times` is given and its event has occurred again since.
     */
    async acknowledge(received: NoticeActionRequest, limits?: Limits): Promise<Notice> {
      const asked = parse(received);
      const silent = "nothing may have been acknowledged; repeat this";
      if (limits !== undefined && isLimited(limits)) {
        refuseOthers(await orDatabaseSilent(store.notice(asked.noticeId), null), limits);
      }
      const done = await orDatabaseSilent(store.markAcknowledged(asked), silent);
      if (done === null) throw noNotice();
      const refusal = REFUSALS[done.verdict]?.(done.notice);
      if (refusal !== undefined) throw new FencepostError(...refusal);
      return done.notice;
    },
  };
}

/**
 * A key that is limited to signers or chains may acknowledge only notices about its own lanes. Notices about a node
 * concern all lanes, so it may not acknowledge them.
 */
function refuseOthers(notice: Notice | null, limits: Limits) {
  if (notice === null || notice.lane === null || !isWithin(limits, notice.lane)) throw noNotice();
}

function noNotice() {
  return new FencepostError("NOT_FOUND", "there is no such notice");
}

function parse({ noticeId, request, actor, idempotencyKey }: NoticeActionRequest) {
  const id = noticeId.toLowerCase();
  if (!UUID.test(id)) throw noNotice();
  const fields = asObject(request, "");
  refuseUnknownKeys(fields, ["reason", "times"], "");
  const { times = null } = fields;
  if (times !== null && !(typeof times === "number" && Number.isSafeInteger(times) && times >= 1)) {
    throw invalid("times", "must be a whole number from 1 on");
  }
  const named = parseActionKey(idempotencyKey, { subject: id, action: "acknowledge", request });
  const actionKey = named === undefined ? null : { key: named.key, fingerprint: named.fingerprint };
  return { noticeId: id, by: actor, why: parseReason(fields.reason), times, actionKey };
}

const REFUSALS: Partial<Record<AcknowledgeVerdict, (notice: Notice) => readonly [ErrorCode, string]>> = {
  reused: () => [
    "REQUEST_ID_REUSED",
    "Idempotency-Key: this notice was acknowledged with other words under this key; nothing was done now",
  ],
  taken: ({ acknowledged }) => [
    "CONFLICT",
    `it was acknowledged by ${acknowledged?.by} (${acknowledged?.why}); nothing was done now`,
  ],
  grown: ({ times }) => [
    "CONFLICT",
    `it has happened ${times} times by now: look at it again before you acknowledge it; nothing was done`,
  ],
};
