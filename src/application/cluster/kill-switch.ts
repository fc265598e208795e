/**
 * The kill switch. The node that receives a kill stops at once, writes the kill to the database, and notifies every
 * other node directly. A node that is notified, or reads the kill in the database, stops too; so a kill reaches every
 * node even while the database is slow or down. A kill ends by a row that records its end, never by a missing row: a
 * node with an unstored kill keeps trying to store it, even if the node that received it has crashed.
 *
 * Reads and writes: kills. Until a process has read the kills once it sends nothing: a kill may be in force. A crash
 * leaves the stored kill, and the notified nodes.
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
  /**
   * Called when transactions may be sent that were stopped before: a kill has ended, or the kills were read for the
   * first time.
   */
  readonly onEnded: () => void;
  /** Called after a kill or its end was written, so that other nodes read it. */
  readonly onWritten: () => void;
  readonly onHistoryChanged: (error: HistoryChanged) => void;
}

/** Time within which a kill request is answered; unfinished work continues in the background. */
const ANSWER_WITHIN_MS = 200;
/** Time-out of one notification: a node that has not answered by then is notified again. */
const NOTIFY_WITHIN_MS = 500;
const AGAIN_MS = 250;
/**
 * Number of notifications, sent over at least ten seconds. By then, a node that cannot be reached has read the kill
 * from the database, or has stopped because its lease deadline passed.
 */
const NOTIFY_TIMES = 40;

interface Held {
  readonly kill: Kill;
  /** True if the last read found the kill in the database. */
  written: boolean;
}

interface Notified {
  readonly member: Member;
  told: boolean;
}

export class KillSwitch {
  private readonly ports;
  private readonly held = new Map<string, Held>();
  /** True once the kills have been read from the database. */
  private isKnown = false;
  /** Total number of kills and ends of kills when they were last read; null if they must be read again. */
  private readAt: number | null = null;
  private keeping: Promise<void> | null = null;
  private readonly stopping = new AbortController();

  constructor(ports: KillSwitchPorts) {
    this.ports = ports;
  }

  /** True if no transaction of this signer may be sent now. */
  holds(signer: Address): boolean {
    return !this.isKnown || (this.held.size > 0 && this.concerning(signer) !== null);
  }

  /** The kill that stops a signer; null if none is known. */
  concerning(signer: Address): Kill | null {
    for (const { kill } of this.held.values()) if (concerns(kill, signer)) return kill;
    return null;
  }

  get inForce(): number {
    return this.shown().length;
  }

  /**
   * Starts a kill: this node stops at once. The result reports which of the remaining steps were done in time; the
   * others continue in the background. A new kill is always created, because an earlier one for the same signer may
   * have been ended at another node without this node having read that.
   */
  async start(request: Omit<Kill, "killId">): Promise<KillAnswer> {
    const { clock, entropy } = this.ports;
    const kill = { killId: entropy.uuid(), ...request };
    this.hold(kill);
    const nodes = this.others().map((member): Notified => ({ member, told: false }));
    const first = Promise.all([this.keep(), ...nodes.map((node) => this.notify(node, kill, NOTIFY_TIMES))]);
    await bounded(clock, first, clock.monotonicMs() + ANSWER_WITHIN_MS);
    return this.answer(nodes);
  }

  /** Receives a kill from another node. That node may crash before it stores the kill, so this node stores it, too. */
  receive(kill: Kill): void {
    this.hold(kill);
    void this.keep();
  }

  /** Ends a kill. Nothing is sent before the end is durable. */
  async end(request: Omit<Kill, "killId">): Promise<KillAnswer> {
    const unwritten = this.about(request.signer).filter(({ written }) => !written);
    const ending = this.ports.store.endKills(
      request,
      unwritten.map(({ kill }) => kill),
    );
    await orDatabaseSilent(
      ending.then(() => this.read()),
      "the kill may still be in force; repeat this",
    );
    this.ports.onWritten();
    return this.answer([]);
  }

  /**
   * Called after the heartbeat rows were read. That read also returns the total number of kills and ends: if it has
   * changed, the kills are read again.
   */
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

  /** Returns one kill per signer, the first one: operators may have issued the same kill many times. */
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

  /** All kills share one alert, so it is resolved when the last of them has ended. */
  private resolve() {
    const message = "no kill is in force any more: waiting transactions are sent in nonce order";
    this.ports.telemetry.emit({ type: "alert.resolved", code: "KILLED", message });
  }

  private others(): readonly Member[] {
    return this.ports.members().filter((member) => isReachable(member) && member.url !== this.ports.selfUrl);
  }

  /**
   * Notifies a node of a kill. Resolves after the first attempt; retries in the background until the node has
   * confirmed.
   */
  private async notify(node: Notified, kill: Kill, times: number) {
    try {
      await this.ports.peers.kill(node.member.url, kill, NOTIFY_WITHIN_MS);
      node.told = true;
    } catch {
      const isWanted = () => times > 1 && this.held.has(kill.killId);
      this.later(isWanted, () => this.notify(node, kill, times - 1));
    }
  }

  /** Stores the kills that are not stored yet. Resolves after the first attempt; retries in the background. */
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
      // Read the kills again: this kill may already have been ended at another node before this node learned of it.
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

  /**
   * Reads the kills from the database. `readAt` becomes null, because it is not known which changes this read sees: the
   * next read of the heartbeat rows repeats it. Only `noticed`, which knows their number, sets `readAt` again.
   */
  private async read() {
    this.readAt = null;
    const asked = [...this.held.values()];
    const rows = await this.ports.store.kills(asked.map(({ kill }) => kill.killId));
    const found = new Set(rows.map(({ killId }) => killId));
    // A missing row does not end a kill: the database may have lost the row, so the kill is written again.
    for (const each of asked) each.written = found.has(each.kill.killId);
    for (const { killId, signer, actor, reason, ended } of rows) {
      if (ended) this.held.delete(killId);
      else this.hold({ killId, signer, actor, reason }).written = true;
    }
    if (rows.some(({ ended }) => ended)) this.ports.onEnded();
    if (asked.length > 0 && this.held.size === 0) this.resolve();
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
