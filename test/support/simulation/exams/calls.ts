import { FencepostError } from "../../../../src/domain/errors.ts";
import { TO } from "../../world.ts";
import { TOKEN } from "../spend-kinds.ts";
import { REVERTER } from "../sticklers.ts";
import { type Desk, STRANGERS } from "./desk.ts";

const DATA = "0x12345678";
const GWEI = 1_000_000_000n;

/** On a signer with nothing pending, what would fail is refused for good, also if its gas is given. */
export async function failAlone(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  const { balance } = world.chain.account(signer);
  const gas = dice.pick([undefined, 50_000]);
  const refused = [
    [{ to: REVERTER, data: DATA, gas }, "REVERT"],
    [{ to: TO, data: DATA, gas }, "NO_CODE"],
    [{ value: String(balance - BigInt(dice.int(1, 1_000))) }, "INSUFFICIENT_FUNDS"],
    [{ value: String(balance + 1n) }, "INSUFFICIENT_FUNDS"],
    [{ maxFeePerGas: "1000", maxPriorityFeePerGas: "0" }, "FEE_TOO_LOW"],
  ] as const;
  for (const [payload, reason] of refused) {
    const answer = await desk.single(desk.transfer(signer, payload));
    if (
      desk.expectRefused(answer, reason, `${JSON.stringify(payload)} alone`) &&
      answer.extras.dependsOnPending === true
    )
      desk.wrong(`${reason} depends on what is pending, and nothing is`);
  }
}

/** Behind what is pending, a failure may be none by then, and a price that nobody takes is refused all the same. */
export async function failBehindOthers(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  world.holdBlocks();
  const doomed = desk.transfer(signer, { to: REVERTER, data: DATA, gas: undefined });
  const trusting = desk.transfer(signer, { to: REVERTER, data: DATA, gas: 50_000 });
  const [first, second = null, third = null] = await desk.batch([desk.transfer(signer), doomed, trusting]);
  desk.expectNew(first ?? null, "the first of a batch");
  for (const answer of [second, await desk.single(doomed)])
    if (desk.expectRefused(answer, "REVERT", "a revert behind others") && answer.extras.dependsOnPending !== true)
      desk.wrong("a revert behind others was called final");
  desk.expectNew(third, "a create with gas behind others");
  desk.expectNew(await desk.single(desk.transfer(signer, { to: REVERTER, data: DATA, gas: 50_000 })), "another one");
  const cheap = desk.transfer(signer, { maxFeePerGas: "1000", maxPriorityFeePerGas: "0" });
  desk.expectRefused(await desk.single(cheap), "FEE_TOO_LOW", "a hopeless price behind others");
  await desk.rest();
}

/** One endpoint of two lies about gas or base fee: it prices nothing, and refuses nothing. */
export async function believeNoLiar(desk: Desk): Promise<void> {
  const { world, dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  await desk.rest();
  const unpriced = { maxFeePerGas: undefined, maxPriorityFeePerGas: undefined };
  const plain = await desk.single(desk.transfer(signer, { to: TOKEN, data: DATA, gas: undefined, ...unpriced }));
  await desk.rest();
  const honest = world.rows().find(({ txId }) => plain !== null && "txId" in plain && txId === plain.txId)
    ?.attempts[0]?.gas;
  if (honest === undefined) return desk.wrong("a call of a token was not sent");
  node.faults.lieAboutGas(() => dice.pick([900_000n, 1_300_000n]));
  const lied = await desk.single(desk.transfer(signer, { to: TOKEN, data: DATA, gas: undefined }));
  node.faults.lieAboutGas(null);
  if (lied instanceof FencepostError) desk.expectRefused(lied, "UNAVAILABLE", "a call about whose gas one of two lies");
  await desk.rest();
  const made = world.rows().find(({ txId }) => lied !== null && "txId" in lied && txId === lied.txId);
  const most = Math.max(0, ...(made?.attempts.map(({ gas }) => Number(gas)) ?? []));
  if (most > 2 * Number(honest)) desk.wrong(`${most} gas were believed, where ${honest} are needed`);
  node.faults.lieAboutFees({ baseFee: 100n * GWEI, price: 100n * GWEI });
  await world.clock.sleep(1_500);
  desk.expectNew(
    await desk.single(desk.transfer(signer)),
    "a create while one of two endpoints lies about the base fee",
  );
  desk.expectNew(await desk.single(desk.transfer(signer)), "another create while one of two lies about the base fee");
  node.faults.lieAboutFees(null);
  await world.clock.sleep(1_500);
  await desk.rest();
}

/** While the chain is silent, a known signer takes what needs nothing of it, and no other signer does. */
export async function askInSilence(desk: Desk): Promise<void> {
  const { dice, node } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  desk.expectNew(await desk.single(desk.transfer(signer)), "a create");
  await desk.rest();
  const ends = [node.faults, desk.second].map((faults) => faults.inject({ kind: "unavailable" }));
  desk.expectNew(await desk.single(desk.transfer(signer)), "a complete create in silence");
  desk.expectRefused(await desk.single(desk.transfer(signer, { gas: undefined })), "UNAVAILABLE", "one without gas");
  for (const end of ends) end();
  await desk.rest();
}

const TRACE = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
/** Largest metadata that a create may have, in bytes. */
const MOST_METADATA = 8 * 1024;

/** A caller's trace is kept, and no trace refuses a create. */
export async function trace(desk: Desk): Promise<void> {
  const { world, dice } = desk;
  const signer = dice.pick(STRANGERS.slice(0, 5));
  const around = JSON.stringify({ note: "" }).length;
  for (const metadata of [{ traceparent: TRACE }, { note: "n".repeat(MOST_METADATA - around) }, { note: "short" }]) {
    const made = await desk.single(desk.transfer(signer, {}, { metadata }));
    if (!desk.expectNew(made, "a create with metadata")) continue;
    const stored = world.rows().find(({ txId }) => txId === made.txId)?.metadata;
    for (const [name, value] of Object.entries(metadata))
      if (stored?.[name] !== value) desk.wrong(`${name} of the metadata became ${String(stored?.[name])}`);
  }
}
