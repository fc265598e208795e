/**
 * One stream of the completion feed. It holds one page at most: the next one is read when the connection has taken the
 * last. Every event has its position as id, so a stream that ends anywhere can be continued at any node.
 */
import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { CompletionsPage } from "../../../application/api.ts";
import { FencepostError, unavailable } from "../../../domain/errors.ts";
import type { Authenticate } from "../exchange/auth.ts";
import type { RouteContext } from "../exchange/options.ts";
import { type errorConverter, problemOf } from "../exchange/problems.ts";
import { eventText, type Place, placeText } from "./server-events.ts";

const PAGE_ITEMS = 100;
/**
 * Longest silence on a stream. Below the idle timeout of most proxies (60 s), and above the time in which TCP probes
 * find a vanished reader (`TCP_KEEP_ALIVE`): they are only sent while nothing waits for an acknowledgement.
 */
const LONGEST_SILENCE_MS = 25_000;
/** Time in which the connection has to take a page. A reader that is slower is disconnected. */
const TAKEN_WITHIN_MS = 10_000;
/** Time for the event that names the reason to leave, before the connection is destroyed. */
const LAST_EVENT_MS = 5_000;
/** Rule in the error of a reader that is too slow. */
const SLOW_RULE = "streamSeconds";

export interface StreamTools extends Pick<RouteContext, "clock" | "longPolls" | "mask"> {
  readonly authenticate: Authenticate;
  readonly convert: ReturnType<typeof errorConverter>;
  readonly itemText: (item: CompletionsPage["items"][number], reply: FastifyReply) => string;
}

/** Position that the caller asked for; without an epoch, in whichever the feed is. */
export type AskedPlace = Omit<Place, "epoch"> & Partial<Place>;

export class FeedStream {
  private readonly tools;
  private readonly request;
  private readonly reply;
  /** Position up to which the feed was read. */
  private place: AskedPlace;
  private isOver = false;

  constructor(tools: StreamTools, exchange: { request: FastifyRequest; reply: FastifyReply }, place: AskedPlace) {
    this.tools = tools;
    this.request = exchange.request;
    this.reply = exchange.reply;
    this.place = place;
  }

  /** Reads the page after the position, and waits up to `waitMs` for its first item. */
  async read(waitMs: number): Promise<CompletionsPage> {
    const { longPolls } = this.tools;
    if (longPolls.draining) throw unavailable("this node is shutting down: continue at another one");
    const { seq: after, ...epoch } = this.place;
    const query = { after, ...epoch, limit: PAGE_ITEMS, waitMs, follows: true };
    const page = await longPolls.hold(this.reply.raw, (signal) => this.request.api.completions({ ...query, signal }));
    this.refuseUnlessAllowed();
    this.place = { epoch: page.epoch, seq: page.next };
    return page;
  }

  /** Body of the response: the first page, read after `after`, and all that follow. */
  body(first: CompletionsPage, after: number): Readable {
    const body = Readable.from(this.events(first, after, () => this.disconnect(body)));
    return body;
  }

  private async *events(first: CompletionsPage, after: number, disconnect: () => void) {
    const { clock } = this.tools;
    const { epoch, filtered } = first;
    let text =
      eventText("begin", JSON.stringify({ epoch, after, filtered }), { epoch, seq: after }) + this.textOf(first);
    for (let saidMs = clock.monotonicMs(); !this.reply.raw.destroyed; ) {
      if (text !== "") {
        const cancel = clock.after(TAKEN_WITHIN_MS, disconnect);
        try {
          yield text;
        } finally {
          cancel();
        }
        saidMs = clock.monotonicMs();
      }
      if (this.isOver) return;
      text = await this.nextText(saidMs + LONGEST_SILENCE_MS).catch((error: unknown) => this.problemText(error));
    }
  }

  /** Text to send next; empty if there is nothing to say yet. */
  private async nextText(speakAtMs: number): Promise<string> {
    const { clock } = this.tools;
    const page = await this.read(Math.max(0, speakAtMs - clock.monotonicMs()));
    // Items of others move the position of a limited key too; the next event or the next sign of life names it.
    if (page.items.length > 0 || clock.monotonicMs() < speakAtMs) return this.textOf(page);
    return placeText({ epoch: page.epoch, seq: page.next });
  }

  private textOf({ items, epoch }: CompletionsPage) {
    return items
      .map((item) => eventText("completion", this.tools.itemText(item, this.reply), { epoch, seq: item.seq }))
      .join("");
  }

  /** Asked before each page is sent: the API key may have been revoked, or its limits changed, while the stream waited. */
  private refuseUnlessAllowed() {
    const { headers, principal } = this.request;
    if (this.tools.authenticate(headers.authorization) === principal) return;
    throw unavailable("the rights of this API key have changed: connect again");
  }

  private problemText(error: unknown) {
    const { convert, mask } = this.tools;
    const problem = convert(error, this.request);
    const { epoch, resumeAfter: seq } = problem.extras;
    const isMoved = problem.code === "EPOCH_CHANGED" && epoch !== undefined && seq !== undefined;
    if (isMoved) this.place = { epoch, seq };
    else this.isOver = true;
    return eventText(isMoved ? "epoch" : "end", JSON.stringify(problemOf(problem, mask)), this.place as Place);
  }

  /**
   * Disconnects a reader that took nothing for too long. What the connection holds already leaves before the last
   * event, if the reader begins to read; the position is the id before it.
   */
  private disconnect(body: Readable) {
    const { clock, convert, mask } = this.tools;
    const { raw } = this.reply;
    const seconds = TAKEN_WITHIN_MS / 1000;
    const slow = new FencepostError("QUOTA_EXCEEDED", `the reader took nothing for ${seconds} seconds`, {
      rule: SLOW_RULE,
      limit: seconds,
      retryAfterSeconds: 1,
    });
    body.unpipe(raw);
    raw.end(eventText("end", JSON.stringify(problemOf(convert(slow, this.request), mask)), null));
    raw.once(
      "close",
      clock.after(LAST_EVENT_MS, () => raw.destroy()),
    );
  }
}
