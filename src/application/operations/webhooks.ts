/**
 * Webhooks for outcomes: adds, changes, pauses, replays, tests and removes subscribers. Any node does it: a subscriber
 * belongs to no lane. The node that delivers notices the change by its ended term.
 *
 * Reads and writes: one subscriber. A crash leaves it changed, or not. Secrets are derived and shown, never stored.
 */
import { FencepostError, invalid, orDatabaseSilent, unavailable } from "../../domain/errors.ts";
import { ANYBODY, KEY_NAME, type Limits, type Principal, refuseOutside } from "../../domain/keys/principal.ts";
import type { Address } from "../../domain/lane.ts";
import { COMPLETION_STATES } from "../../domain/transaction/transitions.ts";
import { reasonOf, resultOf } from "../../domain/webhooks/receiver-answers.ts";
import { isInside, MOST_SUBSCRIBERS, narrowedTo, type OutcomeFilter } from "../../domain/webhooks/subscriber.ts";
import type { Ports } from "../../ports/ports.ts";
import type { SubscriberChange, SubscriberRecord } from "../../ports/subscriber-store.ts";
import type { SecretName, WebhookSender } from "../../ports/webhook-sender.ts";
import type { WebhookActionRequest } from "../api.ts";
import { parseReason } from "../requests/action.ts";
import { asObject, type Fields, given, parseAddress, refuseUnknownKeys, UUID } from "../requests/fields.ts";
import { parseList } from "./keys.ts";

export interface WebhookPorts extends Pick<Ports, "store" | "codec" | "entropy" | "clock" | "wakeUps"> {
  readonly webhooks: WebhookSender;
  /** A subscriber was changed: this node looks at once. */
  readonly webhooksChanged: () => void;
}

const FILTER = ["signers", "chains", "keys", "states"] as const;
const DAY_S = 86_400;
const LEAST_GIVE_UP_S = 60;
const MOST_GIVE_UP_S = 30 * DAY_S;
const USUAL_GIVE_UP_S = 3 * DAY_S;
const MOST_OVERLAP_S = 30 * DAY_S;
const USUAL_OVERLAP_S = DAY_S;
const MOST_URL_CHARACTERS = 2_048;

const NO_SECRET =
  "webhooks are signed with secrets that are derived from FENCEPOST_CLUSTER_SECRET, which this node does not have: set it on every node";

export function webhookOperations(ports: WebhookPorts) {
  return { ...webhookReads(ports), ...webhookChanges(ports), ...webhookSecrets(ports) };
}

function webhookReads(ports: WebhookPorts) {
  return {
    /** Lists the subscribers that the key may see. */
    async webhooks(_query?: undefined, limits: Limits = ANYBODY) {
      const all = await orDatabaseSilent(ports.store.subscribers(), null);
      return all.filter(({ filter }) => isInside(filter, limits)).map(view);
    },
    /** One subscriber with its position and the receiver's last answer. */
    webhook: async (subscriberId: string, limits: Limits = ANYBODY) => view(await find(ports, subscriberId, limits)),
  };
}

function webhookChanges(ports: WebhookPorts) {
  const { store, codec } = ports;
  /** An action without parameters. */
  const plain = (action: "pause" | "resume") => (asked: WebhookActionRequest, limits: Limits) =>
    change(ports, asked, { limits, read: (fields) => only(fields, []) && { action } });
  const [pause, resume] = [plain("pause"), plain("resume")];
  return {
    /** Changes what is given: `url`, the filter as a whole, `giveUpAfterSeconds`. */
    changeWebhook: (asked: WebhookActionRequest, limits: Limits = ANYBODY) => {
      const read = (fields: Fields): SubscriberChange => {
        only(fields, ["url", "giveUpAfterSeconds", ...FILTER]);
        const isFiltered = FILTER.some((each) => fields[each] !== undefined);
        return {
          action: "change",
          ...(fields.url !== undefined && { url: parseUrl(fields.url) }),
          ...(isFiltered && { filter: permitted(parseFilter(codec, fields), limits) }),
          ...(fields.giveUpAfterSeconds !== undefined && { giveUpAfterMs: parseGiveUp(fields) }),
        };
      };
      return change(ports, asked, { limits, read });
    },
    /** Stops deliveries; the position is kept. */
    pauseWebhook: (asked: WebhookActionRequest, limits: Limits = ANYBODY) => pause(asked, limits),
    /** Goes on with deliveries; a receiver that fails is tried at once. */
    resumeWebhook: (asked: WebhookActionRequest, limits: Limits = ANYBODY) => resume(asked, limits),
    /** Delivers everything after a position again. FEED_TRUNCATED if retention has removed what follows it. */
    async replayWebhook(asked: WebhookActionRequest, limits: Limits = ANYBODY) {
      const after = parsePosition(asObject(asked.request, "").after);
      await refuseNoPlace(store, after);
      return change(ports, asked, { limits, read: (fields) => only(fields, ["after"]) && { action: "replay", after } });
    },
    /** Removes a subscriber; its position is forgotten. */
    async removeWebhook({ subscriberId: asked, actor }: WebhookActionRequest, limits: Limits = ANYBODY) {
      const seen = await find(ports, asked, limits);
      if (!(await changing(store.removeSubscriber(seen, actor)))) throw changedMeanwhile(seen);
      announce(ports);
      return { subscriberId: seen.subscriberId, name: seen.name };
    },
  };
}

function webhookSecrets(ports: WebhookPorts) {
  const { store, codec, entropy, clock, webhooks: sender } = ports;
  return {
    /** Adds a subscriber. Its secret is shown here, and after `rotateWebhook`. CONFLICT if the name is taken. */
    async addWebhook({ request, actor }: WebhookActionRequest, principal: Principal = ANYBODY) {
      const fields = asObject(request, "");
      only(fields, ["name", "url", "after", "giveUpAfterSeconds", ...FILTER]);
      const [name, url] = [parseName(fields.name), parseUrl(fields.url)];
      const filter = permitted(parseFilter(codec, fields), principal);
      const after = given(fields.after, parsePosition) ?? null;
      const giveUpAfterMs = parseGiveUp(fields);
      const subscriberId = entropy.uuid();
      const { secret, secretId } = secretFor(sender, { subscriberId, generation: 1 });
      if (after !== null) await refuseNoPlace(store, after);
      const known = { subscriberId, name, url, filter, secretId, after, giveUpAfterMs, createdBy: principal.name };
      const result = await changing(store.addSubscriber(known, actor));
      if (result === "taken") throw new FencepostError("CONFLICT", `there is a webhook ${name} already`);
      if (result === "full") throw new FencepostError("CONFLICT", `there are ${MOST_SUBSCRIBERS} webhooks already`);
      announce(ports);
      return { ...view(await find(ports, subscriberId, ANYBODY)), secret };
    },
    /** Begins the next generation of the secret. Deliveries are signed with both until the overlap is over. */
    async rotateWebhook(asked: WebhookActionRequest, limits: Limits = ANYBODY) {
      const { subscriberId, generation } = await find(ports, asked.subscriberId, limits);
      const { secret, secretId } = secretFor(sender, { subscriberId, generation: generation + 1 });
      const read = (fields: Fields): SubscriberChange => {
        only(fields, ["overlapSeconds"]);
        const overlapMs = parseSeconds(fields.overlapSeconds ?? USUAL_OVERLAP_S, "overlapSeconds");
        return { action: "rotate", generation, secretId, overlapMs };
      };
      return { ...(await change(ports, asked, { limits, read })), secret };
    },
    /** Posts a signed test event now, and reports the receiver's answer. */
    async testWebhook({ subscriberId: asked, request }: WebhookActionRequest, limits: Limits = ANYBODY) {
      only(asObject(request ?? {}, ""), ["reason"]);
      const { subscriberId, url, name, generation } = await find(ports, asked, limits);
      secretFor(sender, { subscriberId, generation });
      const beganMs = clock.monotonicMs();
      const event = { kind: "test", name } as const;
      const message = { url, subscriberId, generations: [generation], eventId: `test_${entropy.uuid()}`, event };
      const answer = await sender.send(message);
      const seconds = (clock.monotonicMs() - beganMs) / 1_000;
      const status = answer.kind === "status" ? answer.status : null;
      return { delivered: resultOf(answer) === "delivered", status, reason: reasonOf(answer), seconds };
    },
  };
}

interface Changing {
  readonly limits: Limits;
  /** Parses the request without its reason. */
  readonly read: (fields: Fields) => SubscriberChange;
}

async function change(ports: WebhookPorts, asked: WebhookActionRequest, { limits, read }: Changing) {
  const { reason, ...fields } = asObject(asked.request ?? {}, "");
  const why = reason === undefined ? null : parseReason(reason);
  const seen = await find(ports, asked.subscriberId, limits);
  const decision = { seen, change: read(fields), actor: asked.actor, reason: why };
  if (!(await changing(ports.store.changeSubscriber(decision)))) throw changedMeanwhile(seen);
  announce(ports);
  return view(await find(ports, seen.subscriberId, limits));
}

function changedMeanwhile({ name }: Pick<SubscriberRecord, "name">) {
  return new FencepostError("CONFLICT", `somebody changed or removed the webhook ${name} meanwhile; nothing was done`);
}

/** A webhook that the key may not see is reported as not found. */
async function find({ store }: WebhookPorts, subscriberId: string, limits: Limits): Promise<SubscriberRecord> {
  const id = subscriberId.toLowerCase();
  const all = UUID.test(id) ? await orDatabaseSilent(store.subscribers(), null) : [];
  const found = all.find((each) => each.subscriberId === id);
  if (found === undefined || !isInside(found.filter, limits)) throw noSuch();
  return found;
}

function changing<T>(work: Promise<T>) {
  return orDatabaseSilent(work, "it may have been done: list the webhooks before you repeat it");
}

/** Has every node look at the subscribers now. */
function announce({ wakeUps, webhooksChanged }: WebhookPorts) {
  wakeUps.notify("webhooks");
  webhooksChanged();
}

function only(fields: Fields, known: readonly string[]): true {
  refuseUnknownKeys(fields, known, "");
  return true;
}

function parseName(name: unknown): string {
  if (typeof name === "string" && KEY_NAME.test(name)) return name;
  throw invalid("name", "must be 1 to 64 characters of A-Z a-z 0-9 _ . -");
}

function parseGiveUp({ giveUpAfterSeconds = USUAL_GIVE_UP_S }: Fields): number {
  return parseSeconds(giveUpAfterSeconds, "giveUpAfterSeconds");
}

function noSuch() {
  return new FencepostError("NOT_FOUND", "there is no such webhook");
}

function secretFor(sender: WebhookSender, name: SecretName) {
  const made = sender.secretOf(name);
  if (made === null) throw unavailable(NO_SECRET);
  return made;
}

/** The subscriber as the API shows it. What may be a secret in its URL is left out. */
function view({ filter, giveUpAfterMs, paused, failingSince, owner, url, ...rest }: SubscriberRecord) {
  const state = paused !== null ? "PAUSED" : failingSince !== null ? "FAILING" : "ACTIVE";
  const shown = { ...rest, ...filter, url: withoutSecrets(url), state, paused, failingSince };
  return { ...shown, giveUpAfterSeconds: giveUpAfterMs / 1_000, nodeId: owner?.nodeId ?? null };
}

function withoutSecrets(url: string) {
  const { origin, pathname, search } = new URL(url);
  return `${origin}${pathname}${search === "" ? "" : "?***"}`;
}

/** A limited key may subscribe only to its own signers and chains, and names none of the others. */
function permitted(filter: OutcomeFilter, limits: Limits): OutcomeFilter {
  for (const signer of filter.signers ?? []) refuseOutside(limits, { signer });
  for (const chainId of filter.chains ?? []) refuseOutside(limits, { chainId });
  return narrowedTo(limits, filter);
}

function parseFilter(codec: WebhookPorts["codec"], fields: Fields): OutcomeFilter {
  const { signers, chains, keys, states } = fields;
  const isChain = (value: unknown) => (Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : null);
  const isKey = (value: unknown) => (typeof value === "string" && KEY_NAME.test(value) ? value : null);
  return {
    signers: parseList<Address>(signers, "signers", (value, path) => parseAddress(codec, value, path)),
    chains: parseList(chains, "chains", isChain),
    keys: parseList(keys, "keys", isKey),
    states: parseList(states, "states", (value) => COMPLETION_STATES.find((state) => state === value) ?? null),
  };
}

/** Addresses are checked when they are resolved, at every request. */
function parseUrl(value: unknown): string {
  const url = typeof value === "string" && value.length <= MOST_URL_CHARACTERS ? URL.parse(value) : null;
  if (url === null || !/^https?:$/.test(url.protocol)) throw invalid("url", "is not an http:// or https:// URL");
  if (url.username !== "" || url.password !== "") throw invalid("url", "must not have credentials: verify signatures");
  if (url.hash !== "") throw invalid("url", "must not have a fragment, which is not sent");
  return url.href;
}

function parsePosition(value: unknown): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw invalid("after", "must be a position in the feed: a whole number from 0 on");
}

/** Refuses a position from which outcomes would be missing, or that the feed has not reached. */
async function refuseNoPlace(store: Pick<Ports["store"], "feed">, after: number) {
  const { lastSeq, truncatedThrough } = await orDatabaseSilent(store.feed(after, 1), null);
  if (after > lastSeq) throw invalid("after", `is above the end of the feed, which is ${lastSeq}`);
  if (after >= truncatedThrough) return;
  throw new FencepostError("FEED_TRUNCATED", `completions up to ${truncatedThrough} are no longer kept`, {
    resumeAfter: truncatedThrough,
  });
}

const SECONDS = {
  giveUpAfterSeconds: [LEAST_GIVE_UP_S, MOST_GIVE_UP_S],
  overlapSeconds: [0, MOST_OVERLAP_S],
} as const;

function parseSeconds(value: unknown, path: keyof typeof SECONDS): number {
  const [least, most] = SECONDS[path];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most) return value * 1_000;
  throw invalid(path, `must be a whole number of seconds from ${least} to ${most}`);
}
