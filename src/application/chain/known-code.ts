import { keepNewest } from "../../domain/keep-newest.ts";
import type { Address } from "../../domain/lane.ts";

/** As much as a busy node's callers use; the oldest make room. */
const MOST_KEPT = 10_000;

/**
 * Addresses that have, or had, code. It only ever permits: a reorg may take code away again, and a contract may destroy
 * itself, but what has been a contract is no mistyped address.
 */
export class KnownCode {
  private readonly addresses = new Map<Address, "seen" | "deployed">();

  /** An endpoint has shown its code: there is nothing more to ask. */
  isSeen(address: Address): boolean {
    return this.addresses.get(address) === "seen";
  }

  /** By its code, or by a receipt of its deployment, which endpoints that lag do not know of yet. */
  isKnown(address: Address): boolean {
    return this.addresses.has(address);
  }

  see(address: Address): void {
    this.keep(address, "seen");
  }

  deploy(address: Address): void {
    if (!this.addresses.has(address)) this.keep(address, "deployed");
  }

  private keep(address: Address, how: "seen" | "deployed") {
    if (this.addresses.get(address) === how) return;
    keepNewest(this.addresses, address, how, MOST_KEPT);
  }
}
