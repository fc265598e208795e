import { FencepostError } from "../../../src/domain/errors.ts";
import type { Address, Hex } from "../../../src/domain/lane.ts";
import type { Reservation } from "../../../src/domain/transaction/reservations.ts";
import { FakeSigner } from "../../doubles/memory-signer.ts";
import { CHAIN_ID, SIGNERS, TO, type WorldNode } from "../world.ts";
import { Actor } from "./actor.ts";
import type { Acknowledged } from "./callers.ts";

const CLIENT_TIMEOUT_MS = 3_000;
const PATIENCE = 40;
/** First value of the reservers' payloads, far from those of other actors, so that a payload shows its sender. */
const FIRST_VALUE = 1_000_000;

/**
 * Simulated callers that sign their transactions themselves. They reserve a nonce and then submit, release or forget
 * it, or send the transaction directly to the chain.
 */
export class Reservers extends Actor {
  readonly acknowledged: Acknowledged[] = [];
  /** Reservations whose release was acknowledged, so that another caller may get their nonce. */
  readonly released: Reservation[] = [];
  private readonly signer = new FakeSigner(SIGNERS);
  /** Number of transactions that were sent directly to the chain, not through Fencepost. */
  hidden = 0;
  private serial = 0;

  reserve(): void {
    this.begin(this.play(++this.serial));
  }

  private async play(serial: number): Promise<void> {
    // Nobody can fill a nonce that its caller leaves unused, if the chain's node holds the key.
    const signer = this.dice.pick(this.world.ownSigners);
    const request = { signer, ttl: this.dice.pick(["500ms", "3s", "20s"]), requestId: `reservation ${serial}` };
    const reserved = await this.surely(({ node }) => node.api.reserveNonce(request));
    if (reserved === null || reserved === "over") return;
    const { reservation } = reserved;
    await this.world.clock.sleep(this.dice.int(0, 4_000));
    const deed = this.dice.weighted([
      [4, () => this.submit(reservation, serial)],
      [3, () => this.release(reservation)],
      [2, () => Promise.resolve()],
      [2, () => this.hide(reservation, serial)],
      [1, () => this.hideAndReport(reservation, serial)],
    ]);
    await deed();
  }

  private async submit(reservation: Reservation, serial: number): Promise<void> {
    const { reservationId, nonce, lane, requestId } = reservation;
    const { value, rawTransaction } = await this.signedFor(reservation, serial);
    const made = await this.surely(({ node }) => node.api.submitReserved(reservationId, { rawTransaction }));
    if (made === null || made === "over") return;
    const wish = { signer: lane.signer, requestId, value, poison: false };
    this.acknowledged.push({ ...wish, txId: made.txId, nonce });
  }

  private async hide(reservation: Reservation, serial: number): Promise<void> {
    const { rawTransaction } = await this.signedFor(reservation, serial);
    await this.world.sendHidden(rawTransaction);
    this.hidden++;
  }

  /**
   * Sends the transaction directly to the chain, and submits it to Fencepost later, usually too late. Fencepost must
   * accept it if nothing else holds the nonce, and refuse it otherwise.
   */
  private async hideAndReport(reservation: Reservation, serial: number): Promise<void> {
    await this.hide(reservation, serial);
    await this.world.clock.sleep(this.dice.int(0, 8_000));
    await this.submit(reservation, serial);
  }

  private async signedFor({ nonce, lane }: Reservation, serial: number) {
    const value = FIRST_VALUE + serial * 10;
    return { value, rawTransaction: await this.sign(lane.signer, { nonce, value }) };
  }

  private async release(reservation: Reservation): Promise<void> {
    const released = await this.surely(({ node }) => node.api.releaseNonce(reservation.reservationId));
    if (released !== null && released !== "over") this.released.push(reservation);
  }

  private async sign(signer: Address, { nonce, value }: { nonce: number; value: number }): Promise<Hex> {
    const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
    const content = { to: TO, data: "0x", value: BigInt(value), gas: 21_000n, fees, accessList: [] } as const;
    const [made] = await this.signer.sign(signer, [{ chainId: CHAIN_ID, nonce, ...content }]);
    return made?.rawTransaction as Hex;
  }

  /**
   * Repeats a request until it has a final response. Returns "over" if it is too late or if an earlier try was already
   * carried out, and null after too many tries.
   */
  private async surely<T>(ask: (node: WorldNode) => Promise<T>): Promise<T | "over" | null> {
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      if (attempt > 0) await this.world.clock.sleep(this.dice.int(50, 800));
      const nodes = this.nodes();
      if (nodes.length === 0) continue;
      const timeout = this.world.clock.sleep(CLIENT_TIMEOUT_MS).then(() => null);
      const answer = await Promise.race([
        ask(this.dice.pick(nodes)).catch((error: unknown) => this.note(error)),
        timeout,
      ]);
      if (answer !== null) return answer;
    }
    return null;
  }

  private note(error: unknown): "over" | null {
    const code = error instanceof FencepostError ? error.code : String(error);
    if (code === "CONFLICT") return "over";
    const isLater = code === "UNAVAILABLE" || code === "NOT_LEADER" || code === "QUOTA_EXCEEDED";
    if (!isLater) this.absurd.push(`a reserver was answered ${String(error)}`);
    return null;
  }
}
