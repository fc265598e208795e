import { afterEach, describe, expect, it } from "vitest";
import type { Chain, Send, SubmitOptions } from "../../../src/ports/chain.ts";
import { deferred } from "../../support/deferred.ts";
import { holdCommits } from "../../support/hold-commits.ts";
import { OperatedWorld } from "../../support/operations.ts";
import { type NodeOptions, SIGNER, TO, World, type WorldNode, type WorldOptions } from "../../support/world.ts";

let world: World;
let ops: OperatedWorld;
afterEach(() => world.close());

interface Given extends SubmitOptions {
  readonly raws: readonly string[];
}

/** Starts a node and records each submission with the endpoints that it is meant for. */
async function start(options: WorldOptions = {}, node: NodeOptions = {}) {
  world = new World(options);
  ops = new OperatedWorld(world);
  const entry = await world.startNode(node);
  const given: Given[] = [];
  const { rpc } = entry;
  const submit = rpc.submit.bind(rpc);
  const wire: { before: () => Promise<void> } = { before: async () => undefined };
  Object.assign(rpc, {
    submit: async (sends: readonly Send[], how: SubmitOptions = {}) => {
      given.push({ ...how, raws: sends.map(({ raw }) => raw) });
      await wire.before();
      return submit(sends);
    },
  });
  return { entry, given, wire };
}

/** From now on, every signed transaction is sent only to a private endpoint. */
const hide = ({ rpc }: WorldNode) => Object.assign(rpc, { privateEndpoints: ["https://builder.example"] });
const rawsOf = (txId: string) => ops.row(txId).attempts.map(({ rawTransaction }) => rawTransaction as string);
const openly = (given: readonly Given[]) =>
  given.filter(({ privately }) => privately !== true).flatMap(({ raws }) => raws);

describe("a private transaction", () => {
  // protects [Attacks] src/application/operations/transaction-actions.ts, src/adapters/evm/submit/submit-transactions.ts
  it("is sent to no public endpoint before the decision to disclose it is committed", async () => {
    const { entry, given, wire } = await start();
    world.holdBlocks();
    const [first, written] = [deferred(), deferred()];
    wire.before = () => first.promise;
    await ops.create(entry);
    await world.until(() => given.length === 1);
    hide(entry);
    const txId = await ops.create(entry);
    await world.until(() => ops.row(txId).state === "TRACKING");
    const isDisclosing = holdCommits(entry, written.promise);
    const request = { reason: "because", disclose: true };
    const acting = entry.node.api.act({ action: "resubmit", txId, request, actor: "operator:ops" });
    await world.until(isDisclosing);
    wire.before = async () => undefined;
    first.resolve();
    await world.clock.advance(2_000);
    expect(ops.row(txId).attempts).toMatchObject([{ private: true }]);
    expect(openly(given)).not.toContain(rawsOf(txId)[0]);
    written.resolve();
    await world.settle(acting);
    await world.until(() => openly(given).includes(rawsOf(txId)[0] as string));
  });
});

describe("a private transaction that an operator sends again", () => {
  it("stays private unless the operator asks to disclose it", async () => {
    const { entry, given } = await start();
    world.holdBlocks();
    hide(entry);
    const txId = await ops.create(entry);
    await world.until(() => given.length === 1);
    const resubmit = { action: "resubmit", txId, request: { reason: "because" }, actor: "operator:ops" } as const;
    await world.settle(entry.node.api.act(resubmit));
    await world.until(() => given.length === 2);
    expect(openly(given)).toEqual([]);
    expect(ops.row(txId).attempts).toMatchObject([{ private: true }]);
  });
});

describe("a new attempt, with private endpoints configured,", () => {
  it("is private if it replaces a transaction sent by the caller", async () => {
    const { entry, given } = await start();
    world.holdBlocks();
    hide(entry);
    const { reservation } = await world.settle(entry.node.api.reserveNonce({ signer: SIGNER }));
    const txHash = `0x${"ab".repeat(32)}` as const;
    const { txId } = await world.settle(entry.node.api.markUsed(reservation.reservationId, { txHash }));
    const payload = { to: TO, value: "7" };
    await ops.act(entry, "replace", { txId, request: { payload } });
    await world.until(() => given.length > 0);
    expect(given.map(({ privately }) => privately)).toEqual(given.map(() => true));
  });

  it("is private if it replaces a placeholder", async () => {
    const { entry, given } = await start();
    world.holdBlocks();
    hide(entry);
    await world.settle(entry.node.api.reserveNonce({ signer: SIGNER, ttl: 1 }));
    await ops.create(entry);
    await world.until(() => world.rows().some(({ attempts }) => attempts[0]?.kind === "placeholder"));
    const txId = world.rows().find(({ attempts }) => attempts[0]?.kind === "placeholder")?.txId as string;
    await world.clock.advance(1_000);
    const from = given.length;
    await ops.act(entry, "replace", { txId, request: { payload: { to: TO, value: "7" } } });
    await world.until(() => given.length > from);
    expect(openly(given)).not.toContain(rawsOf(txId).at(-1));
  });

  it("is private if the chain node signs it", async () => {
    const { entry } = await start({ nodeSigners: [SIGNER] });
    hide(entry);
    const { rpc } = entry;
    const send = rpc.sendUnsigned.bind(rpc);
    const options: unknown[] = [];
    rpc.sendUnsigned = (...[from, unsigned, mayLeave, how]: Parameters<Chain["sendUnsigned"]>) => {
      options.push(how);
      return send(from, unsigned, mayLeave);
    };
    await ops.settled(await ops.create(entry));
    expect(options).toEqual([{ privately: true }]);
  });

  it("is not sent publicly too early by a node whose clock is ahead", async () => {
    const { entry, given } = await start({ settings: { publicAfterMs: 600_000, resubmitIntervalMs: 5_000 } });
    world.holdBlocks();
    hide(entry);
    const txId = await ops.create(entry);
    await world.until(() => given.length > 0);
    world.crash(entry);
    const next = await world.startNode({ aheadMs: 3_600_000 });
    hide(next);
    await world.clock.advance(60_000);
    expect(ops.row(txId).attempts).toMatchObject([{ private: true }]);
    await world.clock.advance(600_000);
    expect(ops.row(txId).attempts.every(({ private: isPrivate }) => isPrivate !== true)).toBe(true);
  });
});
