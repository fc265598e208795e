import { setTimeout as pause } from "node:timers/promises";
import type { BenchSigner } from "../environment/signers.ts";
import type { Setup } from "../environment/workbench.ts";
import { Connection } from "./connection.ts";
import { batchBody } from "./requests.ts";

const BATCH_SIZE = 50;
const FEED_PAGE = 1_000;
const RETRY_MS = 100;

/**
 * Keeps a number of transactions between create and CONFIRMED: whenever the feed reports some, as many are created. So
 * the rate is what the whole pipeline sustains, and nothing piles up.
 */
export class ConfirmingLoad {
  private readonly setup: Setup;
  private readonly target: number;
  private readonly perSecond: number;
  private readonly startMs = performance.now();
  private creators: readonly Connection[] = [];
  private feed: Connection | null = null;
  private running = true;
  private created = 0;
  private turn = 0;
  private wake: (() => void)[] = [];
  private work: Promise<unknown> = Promise.resolve();
  /** Seen in the feed. */
  confirmed = 0;

  constructor(setup: Setup, target: number, perSecond = Number.POSITIVE_INFINITY) {
    this.setup = setup;
    this.target = target;
    this.perSecond = perSecond;
  }

  async start(connections: number): Promise<void> {
    const { node, nodes } = this.setup;
    const each = Math.ceil(connections / nodes.length);
    this.creators = (await Promise.all(nodes.map(({ url }) => Connection.openAll(url, each)))).flat();
    const feed = await Connection.open(node.url);
    this.feed = feed;
    this.work = Promise.all([this.follow(feed), ...this.creators.map((connection) => this.create(connection))]);
    this.work.catch(() => undefined);
  }

  /** Throws what went wrong on the way, if anything did. */
  async stop(): Promise<void> {
    this.running = false;
    this.wakeAll();
    await this.work;
    for (const connection of [...this.creators, this.feed]) connection?.close();
  }

  private async create(connection: Connection): Promise<void> {
    while (this.running) {
      if (this.created - this.confirmed >= this.target) {
        await new Promise<void>((resolve) => this.wake.push(resolve));
        continue;
      }
      const dueMs = (1_000 * this.created) / this.perSecond;
      this.created += BATCH_SIZE;
      await pause(this.startMs + dueMs - performance.now());
      const body = batchBody(this.nextSigner().address, BATCH_SIZE, { priced: false });
      const answer = await connection.post("/api/v1/tx/batch", body);
      const refused = BATCH_SIZE - (answer.body.split('"status":202').length - 1);
      if (refused === 0) continue;
      // A node that is overrun says so, and a caller comes back: what is measured is what gets confirmed.
      if (!answer.body.includes('"status":503')) throw new Error(`a create was refused: ${answer.body.slice(0, 300)}`);
      this.created -= refused;
      await pause(RETRY_MS);
    }
  }

  private async follow(feed: Connection): Promise<void> {
    for (let after = 0; this.running; ) {
      const answer = await feed.get(`/api/v1/tx/completions?after=${after}&limit=${FEED_PAGE}&wait=1`);
      const page = JSON.parse(answer.body) as { next: number; items: readonly { state: string }[] };
      const other = page.items.find(({ state }) => state !== "CONFIRMED");
      if (other !== undefined) throw new Error(`the feed reports ${JSON.stringify(other)}`);
      this.confirmed += page.items.length;
      after = page.next;
      this.wakeAll();
    }
  }

  private nextSigner(): BenchSigner {
    const { signers } = this.setup;
    return signers[this.turn++ % signers.length] as BenchSigner;
  }

  private wakeAll(): void {
    const waiting = this.wake;
    this.wake = [];
    for (const resume of waiting) resume();
  }
}
