/**
 * The kill switch. The node that is asked stops at once, writes the kill to the database, and notifies every other node
 * directly; a node that is notified, or reads it in the database, stops too. So a kill reaches every node by either
 * way, also while the database is slow or away. It ends by a row that says so, never by a missing row: a node with a
 * kill that is not stored keeps writing it until it is, even if the node that was asked has crashed.
 *
 * Reads and writes: kills. Until they were read once nothing may be sent: a kill may be in force that this process,
 * just started, does not know. A crash leaves the stored kill, and the notified nodes.
 */

import { concerns, type Kill } from "../../domain/cluster/kills.ts";
import { isReachable, type Member } from "../../domain/cluster/placement.ts";
import { orDatabaseSilent } from "../../domain/errors.ts";
import type { Address } from "../../domain/lane.ts";
import { bounded } from "../../ports/clock.ts";
import { HistoryChanged } from "../../ports/lane-store.ts";
import type { Ports } from "../../ports/ports.ts";
import type { KillAnswer } from "../api.ts";

interface KillSwitchPorts extends Pick<Ports, "peers" | "clock" | "entropy" | "telemetry"> {
  readonly store: Pick<Ports["store"], "keepKills" | "endKills" | "kills">;
  readonly members: () => readonly Member[];
  readonly selfUrl: string;
  /** Something may be sent that could not be before. */
  readonly onEnded: () => void;
  /** The other nodes would read something new. */
  readonly onWritten: () => void;
  readonly onHistoryChanged: (error: HistoryChanged) => void;
}

/** Until when an order is answered; what is not done by then goes on behind the answer. */
const ANSWER_WITHIN_MS = 200;
/** Limit of one notification: a node that has not answered by then is notified again. */
const NOTIFY_WITHIN_MS = 500;
const AGAIN_MS = 250;
/** Ten seconds: by then a node that cannot be notified has read the kill, or is past its own deadline. */
const NOTIFY_TIMES = 40;

interface Held {
  readonly kill: Kill;
  /** The kill is in the database, as of the last read. */
  written: boolean;
}

interface Notified {
  readonly member: Member;
  told: boolean;
}

export class KillSwitch {
  private readonly ports;
  private readonly held = new Map<string, Held>();
  /** Read once at least. */
  private isKnown = false;
  /** Number of kills and ends at the last read; null: they must be read again. */
  private readAt: number | null = null;
  private keeping: Promise<void> | null = null;
  private readonly stopping = new AbortController();

  constructor(ports: KillSwitchPorts) {
    this.ports = ports;
  }

  /** Nothing of this signer may be sent now. */
  holds(signer: Address): boolean {
    return !this.isKnown || (this.held.size > 0 && this.concerning(signer) !== null);
  }

  /** The order that stops a signer; null: none is known. */
  concerning(signer: Address): Kill | null {
    for (const { kill } of this.held.values()) if (concerns(kill, signer)) return kill;
    return null;
  }

  get inForce(): number {
    return this.shown().length;
  }

  /**
   * Stops at once. Says how much of the rest was done soon; what was not goes on. Always an order of its own: one that is
   * held for the same signer may have been ended at another node, which this one has not read yet.
   */
  async order(order: Omit<Kill, "killId">): Promise<KillAnswer> {
    const { clock, entropy } = this.ports;
    const kill = { killId: entropy.uuid(), ...order };
    this.hold(kill);
    const nodes = this.others().map((member): Notified => ({ member, told: false }));
    const first = Promise.all([this.keep(), ...nodes.map((node) => this.notify(node, kill, NOTIFY_TIMES))]);
    await bounded(clock, first, clock.monotonicMs() + ANSWER_WITHIN_MS);
    return this.answer(nodes);
  }

  /** Another node was asked. It may crash before the order is written down: so this one writes it, too. */
  receive(kill: Kill): void {
    this.hold(kill);
    void this.keep();
  }

  /** Nothing is sent before the end is durable. */
  async end(order: Omit<Kill, "killId">): Promise<KillAnswer> {
    const unwritten = this.about(order.signer).filter(({ written }) => !written);
    const ending = this.ports.store.endKills(
      order,
      unwritten.map(({ kill }) => kill),
    );
    await orDatabaseSilent(
      ending.then(() => this.read()),
      "the order to stop may still be in force; repeat this",
    );
    this.ports.onWritten();
    return this.answer([]);
  }

  /** The heartbeat rows were read, and with them the number of kills and ends. */
  async noticed(changes: number | undefined): Promise<void> {
    if (changes === undefined || changes === this.readAt) return;
    await this.read();
    this.readAt = changes;
    if (this.isKnown) return;
    this.isKnown = true;
    this.ports.onEnded();
  }

  stop(): void {
    this.stopping.abort();
  }

  private about(signer: Address | null): readonly Held[] {
    return [...this.held.values()].filter(({ kill }) => kill.signer === signer);
  }

  /** One for each signer, the first: people may have given the same kill many times. */
  private shown(): readonly Kill[] {
    const kills = [...this.held.values()].map(({ kill }) => kill);
    return kills.filter(({ signer }, at) => kills.findIndex((each) => each.signer === signer) === at);
  }

  private hold(kill: Kill): Held {
    const before = this.held.get(kill.killId);
    if (before !== undefined) return before;
    const held = { kill, written: false };
    const isRepeat = this.about(kill.signer).length > 0;
    this.held.set(kill.killId, held);
    if (isRepeat) return held;
    const what = kill.signer === null ? "everything is stopped" : `${kill.signer} is stopped`;
    const message = `${what}: nothing is sent until somebody ends this (${kill.actor}: ${kill.reason})`;
    this.ports.telemetry.emit({ type: "alert", severity: "CRITICAL", code: "KILLED", message });
    return held;
  }

  private others(): readonly Member[] {
    return this.ports.members().filter((member) => isReachable(member) && member.url !== this.ports.selfUrl);
  }

  /** Resolves after the first attempt; continues in the background until the node is notified. */
  private async notify(node: Notified, kill: Kill, times: number) {
    try {
      await this.ports.peers.kill(node.member.url, kill, NOTIFY_WITHIN_MS);
      node.told = true;
    } catch {
      const isWanted = () => times > 1 && this.held.has(kill.killId);
      this.later(isWanted, () => this.notify(node, kill, times - 1));
    }
  }

  /** Writes down what is not; resolves after the first try, and goes on behind that until it is. */
  private keep() {
    this.keeping ??= this.keepOnce().finally(() => {
      this.keeping = null;
    });
    return this.keeping;
  }

  private async keepOnce() {
    const unwritten = () => [...this.held.values()].filter(({ written }) => !written);
    if (unwritten().length === 0) return;
    try {
      await this.ports.store.keepKills(unwritten().map(({ kill }) => kill));
      // Read again: a kill may have been ended before this node was notified of it.
      await this.read();
      this.ports.onWritten();
    } catch (error) {
      if (error instanceof HistoryChanged) this.ports.onHistoryChanged(error);
    }
    this.later(
      () => unwritten().length > 0,
      () => this.keep(),
    );
  }

  private later(isWanted: () => boolean, again: () => Promise<void>) {
    const isOver = () => this.stopping.signal.aborted || !isWanted();
    if (!isOver()) this.ports.clock.after(AGAIN_MS, () => void (isOver() ? null : again()));
  }

  /** If it is not known which changes this read has seen, the next read of the instances repeats it. */
  private async read() {
    this.readAt = null;
    const asked = [...this.held.values()];
    const rows = await this.ports.store.kills(asked.map(({ kill }) => kill.killId));
    const found = new Set(rows.map(({ killId }) => killId));
    // A database that has lost a row has not ended the order.
    for (const each of asked) each.written = found.has(each.kill.killId);
    for (const { killId, signer, actor, reason, ended } of rows) {
      if (ended) this.held.delete(killId);
      else this.hold({ killId, signer, actor, reason }).written = true;
    }
    if (rows.some(({ ended }) => ended)) this.ports.onEnded();
    void this.keep();
  }

  private answer(nodes: readonly Notified[]): KillAnswer {
    return {
      durable: [...this.held.values()].every(({ written }) => written),
      kills: this.shown(),
      nodes: nodes.map(({ member: { nodeId, url }, told }) => ({ nodeId, url, told })),
    };
  }
}
