/** Troubles of subscribers: receivers of webhooks that do not get their outcomes. */
import type { LastAnswer, Subscriber } from "../webhooks/subscriber.ts";
import { offersFor } from "./advice.ts";
import { type Trouble, trouble } from "./rows.ts";

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

export interface SubscriberTrouble {
  readonly code: "WEBHOOK_FAILING" | "WEBHOOK_PAUSED" | "WEBHOOK_UNSERVED";
  readonly subscriber: string;
  readonly text: string;
  readonly since: Date | null;
  /** False: somebody paused it, who knows. */
  readonly alerts: boolean;
}

/** A receiver that is restarted answers again within this time. */
const PATIENCE_MS = 60_000;

export function subscriberTrouble(of: Watched): SubscriberTrouble | null {
  const { name: subscriber, paused, failingSince, owner, behind, behindSince, changedAt, readAt } = of;
  const isLong = (since: Date) => readAt.getTime() - since.getTime() >= PATIENCE_MS;
  if (paused !== null) {
    const text = `${WHY[paused.by](of, paused.why)}; its position is kept (${backlogOf(of)})`;
    const { at: since, by } = paused;
    return { code: "WEBHOOK_PAUSED", subscriber, text, since, alerts: by !== "OPERATOR" };
  }
  if (failingSince !== null && isLong(failingSince)) {
    const text = `the receiver of ${subscriber} does not take outcomes: ${answerOf(of.lastAnswer)} (${backlogOf(of)})`;
    return { code: "WEBHOOK_FAILING", subscriber, text, since: failingSince, alerts: true };
  }
  if (owner !== null || behind === 0 || behindSince === null || !isLong(behindSince) || !isLong(changedAt)) return null;
  const text = `no live node delivers for ${subscriber}: none can derive its secret (${backlogOf(of)})`;
  return { code: "WEBHOOK_UNSERVED", subscriber, text, since: behindSince, alerts: true };
}

const WHY = {
  OPERATOR: ({ name }: Watched, why: string) => `somebody paused the subscriber ${name} (${why})`,
  GONE: ({ name }: Watched) => `the receiver of ${name} answered 410 Gone, so that nothing more is sent to it`,
  GAVE_UP: ({ name }: Watched, why: string) => `the receiver of ${name} failed for too long, and was given up: ${why}`,
};

function answerOf(answer: LastAnswer | null) {
  if (answer === null) return "it has not answered yet";
  return answer.status === null ? (answer.reason ?? "no response") : `HTTP ${answer.status}`;
}

function backlogOf({ position, behind }: Watched) {
  return `position ${position}, ${behind} behind the feed`;
}

/** Row of the attention list; null if nothing is wrong. */
export function ofSubscriber(of: Watched): readonly Trouble[] {
  const found = subscriberTrouble(of);
  if (found === null) return [];
  const { code, text, since } = found;
  const { subscriberId, name } = of;
  const actions = offersFor({ subscriberId }, [code === "WEBHOOK_PAUSED" ? "RESUME_WEBHOOK" : "PAUSE_WEBHOOK"]);
  const sentence = `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
  const row = trouble(code, { sentence, since, actions, subscriber: name, asOf: of.readAt }, subscriberId);
  return [found.alerts ? row : { ...row, severity: "WARNING" }];
}
