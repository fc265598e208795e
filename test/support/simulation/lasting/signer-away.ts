import { FencepostError } from "../../../../src/domain/errors.ts";
import { SignerAway } from "../../../../src/ports/signer.ts";
import { type Calm, gapsOf, ONE } from "./calm.ts";

const LATE_MS = 1_200;
const SOON_MS = 500;
const SELDOM_MS = 30_000;

/**
 * A key service does not answer for minutes, or answers with something else. It is asked again after pauses that grow to
 * half a minute, and people are shown since when it is away: since its first failure, not its last.
 */
export async function signerAway(calm: Calm): Promise<void> {
  const { world } = calm;
  const lies = calm.inTurn([false, true]);
  const entry = await calm.start();
  const asked: number[] = [];
  let isOver = false;
  const sign = entry.signer.sign.bind(entry.signer);
  entry.signer.sign = (...args) => {
    if (isOver || args[0] !== ONE) return sign(...args);
    asked.push(calm.nowMs);
    return Promise.reject(new SignerAway("the key service is away", { lies }));
  };
  await calm.create(entry, 2);
  const since = world.clock.now().getTime();
  await world.clock.advance(4 * SELDOM_MS);
  const gaps = gapsOf(asked);
  calm.expect((gaps[0] ?? 0) <= SOON_MS + LATE_MS, `the first pause is short, not ${gaps[0]} ms`);
  calm.expect(Math.max(...gaps) <= SELDOM_MS + LATE_MS, "a key service is asked a few times a minute");
  const isGrown = gaps.every((gap, index) => index < 4 || gap > (gaps[index - 2] ?? 0) || gap >= SELDOM_MS / 2);
  calm.expect(isGrown, `its pauses grow: ${gaps}`);
  const explained = await world.settle(entry.node.api.explain(world.rows()[0]?.txId ?? ""));
  const shown = explained instanceof FencepostError ? "" : JSON.stringify(explained);
  calm.expect(
    shown.includes(new Date(since).toISOString().slice(0, -4)),
    `it is away since ${new Date(since).toISOString()}: ${shown}`,
  );
  isOver = true;
  await world.allSettled(2, 2 * SELDOM_MS);
}
