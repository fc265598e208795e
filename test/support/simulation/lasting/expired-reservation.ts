import { FencepostError } from "../../../../src/domain/errors.ts";
import { FakeSigner } from "../../../doubles/memory-signer.ts";
import { CHAIN_ID, SIGNERS, TO } from "../../world.ts";
import { type Calm, ONE } from "./calm.ts";

const TTL_MS = 6_000;
const LATE_MS = 2_500;

/**
 * A caller reserves a nonce, and the reservation expires while something waits above it. The nonce is filled only after
 * the caller's transaction was looked for, and not found, for as long as the reservation had lasted. If it was found and
 * then disappeared, that time begins anew.
 */
export async function expiredReservation(calm: Calm): Promise<void> {
  const { world } = calm;
  world.holdBlocks();
  const entry = await calm.start();
  const reserved = await world.settle(
    entry.node.api.reserveNonce({ signer: ONE, ttl: `${TTL_MS}ms`, requestId: "a reservation" }),
  );
  if (reserved instanceof FencepostError) throw reserved;
  const { nonce } = reserved.reservation;
  await calm.create(entry, 1);
  await world.clock.advance(TTL_MS);
  let missingMs = calm.nowMs;
  if (calm.inTurn([true, false])) {
    await world.clock.advance(1_000);
    const fees = { type: "eip1559", maxFeePerGas: 20_000_000_000n, maxPriorityFeePerGas: 1_000_000_000n } as const;
    const content = { to: TO, data: "0x", value: 7n, gas: 21_000n, fees, accessList: [] } as const;
    const [signed] = await new FakeSigner(SIGNERS).sign(ONE, [{ chainId: CHAIN_ID, nonce, ...content }]);
    const hash = await world.sendHidden(signed?.rawTransaction ?? "0x");
    await world.clock.advance(TTL_MS / 2);
    world.chain.dropTransaction(hash);
    missingMs = calm.nowMs;
  }
  const isFilled = () => calm.sends.some((sent) => sent.nonce === nonce);
  await world.until(isFilled, TTL_MS + LATE_MS);
  const afterMs = calm.nowMs - missingMs;
  calm.expect(afterMs >= TTL_MS - world.settings.pollIntervalMs, `nonce ${nonce} was filled after ${afterMs} ms`);
  world.releaseBlocks();
  await world.allSettled(2);
}
