/** Troubles of subscribers: receivers of webhooks that do not get their outcomes. */
import type { LastAnswer, Subscriber } from "../webhooks/subscriber.ts";
import { offersFor } from "./advice.ts";
import { type Trouble, trouble } from "./rows.ts";
import { agoInWords, inSentence, spanInWords } from "./words.ts";

/** A subscriber with its backlog. */
interface Watched
  extends Pick<
    Subscriber,
    "subscriberId" | "name" | "position" | "paused" | "failingSince" | "lastAnswer" | "nextTryAt" | "changedAt"
  > {
  readonly owner: object | null;
  readonly behind: number;
  readonly behindSince: Date | null;
  readonly readAt: Date;
}

/** Troubles of subscribers. A subscriber has one of them at a time. */
export const SUBSCRIBER_CODES = ["WEBHOOK_BEHIND", "WEBHOOK_FAILING", "WEBHOOK_PAUSED", "WEBHOOK_UNSERVED"] as const;
type SubscriberCode = (typeof SUBSCRIBER_CODES)[number];

export interface SubscriberTrouble {
  readonly code: SubscriberCode;
  readonly subscriber: string;
  readonly text: string;
  readonly since: Date | null;
  /** False: somebody paused it, who knows. */
  readonly alerts: boolean;
}

/** A receiver that is restarted answers again within this time. */
const PATIENCE_MS = 60_000;
/** A receiver that takes outcomes this late is slower than they arrive. A replay is no such delay at first. */
const LATE_MS = 300_000;

export function subscriberTrouble(of: Watched): SubscriberTrouble | null {
  const { name: subscriber, paused, failingSince, owner, behind, behindSince, changedAt, readAt } = of;
  const isLong = (since: Date, ms = PATIENCE_MS) => readAt.getTime() - since.getTime() >= ms;
  const found = (code: SubscriberCode, text: string, since: Date) => ({
    ...{ code, subscriber, text: `${text} (${placeOf(of)})`, since, alerts: paused?.by !== "OPERATOR" },
  });
  if (paused !== null)
    return found("WEBHOOK_PAUSED", `${WHY[paused.by](of, paused.why)}; its position is kept`, paused.at);
  if (failingSince !== null && isLong(failingSince))
    return found("WEBHOOK_FAILING", `the receiver of ${subscriber} does not take outcomes`, failingSince);
  if (behind === 0 || behindSince === null) return null;
  const isLate = (ms: number) => isLong(behindSince, ms) && isLong(changedAt, ms);
  if (owner === null && isLate(PATIENCE_MS)) {
    const text = `no live node delivers for ${subscriber}: none can derive its secret`;
    return found("WEBHOOK_UNSERVED", text, behindSince);
  }
  if (owner === null || !isLate(LATE_MS)) return null;
  return found("WEBHOOK_BEHIND", `the receiver of ${subscriber} takes outcomes slower than they arrive`, behindSince);
}

const WHY = {
  OPERATOR: ({ name }: Watched, why: string) => `somebody paused the subscriber ${name} (${why})`,
  GONE: ({ name }: Watched) => `the receiver of ${name} answered 410 Gone, so that nothing more is sent to it`,
  GAVE_UP: ({ name }: Watched, why: string) => `the receiver of ${name} failed for too long, and was given up: ${why}`,
};

/** Position, backlog with its age, and the last answer with its age. */
function placeOf({ position, behind, behindSince, lastAnswer, readAt }: Watched) {
  const age = behindSince === null ? "" : `, the oldest for ${spanInWords(behindSince, readAt)}`;
  return `position ${position}; ${behind} behind the feed${age}; ${answerText(lastAnswer, readAt)}`;
}

function answerText(answer: LastAnswer | null, now: Date) {
  if (answer === null) return "no answer yet";
  const { status, reason, at } = answer;
  return `last answer ${status === null ? (reason ?? "none") : `HTTP ${status}`}, ${agoInWords(at, now)}`;
}

/** To resume a webhook that fails tries it at once. */
const HELP = {
  WEBHOOK_BEHIND: ["LOOK_AT_WEBHOOK"],
  WEBHOOK_FAILING: ["RESUME_WEBHOOK", "PAUSE_WEBHOOK"],
  WEBHOOK_PAUSED: ["RESUME_WEBHOOK"],
  WEBHOOK_UNSERVED: ["LOOK_AT_NODES"],
} as const satisfies Readonly<Record<SubscriberCode, readonly unknown[]>>;

/** Row of the attention list; null if nothing is wrong. */
export function ofSubscriber(of: Watched): readonly Trouble[] {
  const found = subscriberTrouble(of);
  if (found === null) return [];
  const { code, text, since } = found;
  const { subscriberId, name } = of;
  const actions = offersFor({ subscriberId }, HELP[code]);
  const row = trouble(
    code,
    { sentence: inSentence(text), since, actions, subscriber: name, asOf: of.readAt },
    subscriberId,
  );
  return [found.alerts ? row : { ...row, severity: "WARNING" }];
}
