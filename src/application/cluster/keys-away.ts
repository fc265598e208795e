/**
 * Tracks which of this node's keys fail to sign, from the results of its lanes' signing requests. The result is
 * published with the heartbeat, so that a lane moves to a node whose signer works.
 *
 * Reads: nothing. Writes: nothing; the cluster module publishes the result. A wrong or outdated result moves a lane
 * needlessly, but never causes a wrong write (I10).
 */
import { afterFailure, afterSignature, isAway, type KeyHealth } from "../../domain/cluster/key-health.ts";
import type { Address } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";
import { type Signer, SignerAway, SigningRefused } from "../../ports/signer.ts";

interface KeysAwayPorts {
  readonly signer: Signer;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly leaseDurationMs: number;
}

export class KeysAway {
  /** Wraps the given signer and records the result of each request in `health`. */
  readonly signer: Signer;
  private readonly ports;
  private readonly health = new Map<Address, KeyHealth>();

  constructor(ports: KeysAwayPorts) {
    this.ports = ports;
    const { signer } = ports;
    this.signer = {
      addresses: () => signer.addresses(),
      custody: (address) => signer.custody(address),
      close: () => signer.close(),
      sign: (address, transactions, term) => this.watched(address, signer.sign(address, transactions, term)),
      signMessages: (address, messages, term) => this.watched(address, signer.signMessages(address, messages, term)),
    };
  }

  list(): readonly Address[] {
    const nowMs = this.ports.clock.monotonicMs();
    return [...this.health].flatMap(([address, health]) => (isAway(health, nowMs) ? [address] : [])).sort();
  }

  private async watched<T>(address: Address, signing: Promise<T>) {
    try {
      const signed = await signing;
      this.signed(address);
      return signed;
    } catch (error) {
      // The request was refused before the key was used, so the refusal does not show whether the key can sign.
      if (error instanceof SignerAway && error.signed.length > 0) this.signed(address);
      else if (!(error instanceof SigningRefused)) this.failed(address);
      throw error;
    }
  }

  private failed(address: Address) {
    const { clock, leaseDurationMs } = this.ports;
    this.health.set(address, afterFailure(this.health.get(address), clock.monotonicMs(), leaseDurationMs));
  }

  private signed(address: Address) {
    const before = this.health.get(address);
    if (before === undefined) return;
    const { clock, leaseDurationMs } = this.ports;
    const health = afterSignature(before, clock.monotonicMs(), leaseDurationMs);
    if (health === undefined) this.health.delete(address);
    else this.health.set(address, health);
  }
}
