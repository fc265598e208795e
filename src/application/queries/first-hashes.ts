/**
 * Callers that wait until their transaction is signed, wherever its lane is owned: its first attempt is looked for in the
 * database. One look serves all who wait, so that two hundred callers cost as much as one.
 */
import type { Hash } from "../../domain/lane.ts";
import { isSettled } from "../../domain/transaction/transitions.ts";
import { within } from "../../ports/clock.ts";
import type { Ports } from "../../ports/ports.ts";
import type { Waiting } from "../api.ts";

/** Signing takes a few milliseconds where nothing is in its way. */
const LOOK_EVERY_MS = 20;

type Tell = (hash: Hash | null) => void;

export class FirstHashes {
  private readonly ports: Pick<Ports, "clock" | "store">;
  private readonly waiting = new Map<string, Set<Tell>>();
  private looking = false;

  constructor(ports: Pick<Ports, "clock" | "store">) {
    this.ports = ports;
  }

  /** Null: not in time, or never: it is over, and was never signed. */
  async of(txId: string, { withinMs, signal }: Waiting): Promise<Hash | null> {
    if (withinMs <= 0 || signal?.aborted) return null;
    let tell: Tell = () => undefined;
    const told = new Promise<Hash | null>((resolve) => {
      tell = resolve;
    });
    const giveUp = () => tell(null);
    signal?.addEventListener("abort", giveUp, { once: true });
    this.enter(txId, tell);
    try {
      return await within(this.ports.clock, told, { ms: withinMs, late: () => null });
    } finally {
      signal?.removeEventListener("abort", giveUp);
      this.leave(txId, tell);
    }
  }

  private enter(txId: string, tell: Tell) {
    const others = this.waiting.get(txId) ?? new Set();
    this.waiting.set(txId, others.add(tell));
    if (!this.looking) void this.look();
  }

  private leave(txId: string, tell: Tell) {
    const others = this.waiting.get(txId);
    others?.delete(tell);
    if (others?.size === 0) this.waiting.delete(txId);
  }

  private async look() {
    this.looking = true;
    while (this.waiting.size > 0) {
      await this.ports.clock.sleep(LOOK_EVERY_MS);
      // A database that does not answer says nothing about them: they wait on, for as long as they may.
      const found = await this.ports.store.firstHashes([...this.waiting.keys()]).catch(() => []);
      for (const { txId, txHash, state } of found) {
        if (txHash === null && !isSettled(state)) continue;
        for (const tell of this.waiting.get(txId) ?? []) tell(txHash);
        this.waiting.delete(txId);
      }
    }
    this.looking = false;
  }
}
