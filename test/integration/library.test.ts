/** The library embedded in this process, on a database that it shares with the caller. */
import { Client } from "pg";
import { describe, expect } from "vitest";
import {
  createFencepost,
  type Fencepost,
  FencepostError,
  type FencepostOptions,
  type StuckContext,
  type StuckDecision,
  type TelemetryEvent,
} from "../../src/index.ts";
import { audit, storedTransactions, untilSettled } from "../support/audit.ts";
import { it as base, type Database, KEYS, RECIPIENT, SIGNER } from "../support/integration.ts";
import { range, transfer } from "../support/transfers.ts";
import { waitUntil } from "../support/wait-until.ts";

interface Embedding {
  create(rpc: string, options?: Partial<FencepostOptions>): Promise<Fencepost>;
  /** Opens a database connection for the caller's own use. */
  client(): Promise<Client>;
}

const it = base.extend<{ readonly embed: Embedding }>({
  embed: async ({ database }, use) => {
    const closing: (() => Promise<unknown>)[] = [];
    await database.query("CREATE TABLE orders (id text PRIMARY KEY)");
    await use({
      create: async (rpc, options = {}) => {
        const fencepost = await createFencepost({
          databaseUrl: database.url,
          chains: [{ rpc, confirmations: 1, pollInterval: "50ms" }],
          signers: KEYS,
          ...options,
        });
        closing.push(() => fencepost.close());
        return fencepost;
      },
      client: async () => {
        const client = new Client({ connectionString: database.url });
        client.on("error", () => undefined);
        await client.connect();
        closing.push(() => client.end().catch(() => undefined));
        return client;
      },
    });
    for (const close of closing.reverse()) await close();
  },
});

/** Inserts the order row and sends the payment in one transaction of the caller, and leaves that transaction open. */
async function order(fencepost: Fencepost, client: Client, id: number): Promise<string> {
  await client.query("BEGIN");
  await client.query("INSERT INTO orders VALUES ($1)", [`order-${id}`]);
  const { txId, state, nonce } = await fencepost.send(transfer(id, "order"), { client });
  expect({ state, nonce }).toEqual({ state: "CREATED", nonce: null });
  return txId;
}

const intakeRows = (database: Database) => database.query("SELECT 1 FROM fencepost.intake WHERE alias_of IS NULL");

describe("createFencepost", () => {
  it("sends a transaction and waits for the outcome", async ({ embed, edr, database }) => {
    const fencepost = await embed.create(edr.url);
    const created = await Promise.all(range(5).map((index) => fencepost.send(transfer(index))));
    expect(created.map(({ nonce }) => nonce).toSorted()).toEqual(range(5));
    const repeated = await fencepost.send(transfer(0));
    expect(repeated.txId).toBe(created[0]?.txId);
    const outcomes = await Promise.all(created.map(({ txId }) => fencepost.waitFor(txId, { timeoutMs: 30_000 })));
    expect(outcomes.map(({ state }) => state)).toEqual(range(5).map(() => "CONFIRMED"));
    const followed: string[] = [];
    for await (const { seq, txId } of fencepost.completions()) {
      expect(seq).toBe(followed.push(txId));
      if (seq === 5) break;
    }
    expect(new Set(followed)).toEqual(new Set(created.map(({ txId }) => txId)));
    const first = await fencepost.get(created[0]?.txId as string, { include: ["history"] });
    expect(first.history?.map(({ event }) => event)).toEqual(["allocate", "sign", "broadcast", "mine", "confirm"]);
    await audit({ database, rpcUrl: edr.url });
  });

  it("returns addresses in EIP-55 casing", async ({ embed, edr }) => {
    const warnings: string[] = [];
    const note = ({ name }: Error) => void warnings.push(name);
    process.on("warning", note);
    const fencepost = await embed.create(edr.url);
    const created = await Promise.all(range(15).map((index) => fencepost.send(transfer(index))));
    const outcomes = await Promise.all(created.map(({ txId }) => fencepost.waitFor(txId, { timeoutMs: 60_000 })));
    process.off("warning", note);
    expect(warnings).toEqual([]);
    expect(SIGNER).not.toBe(SIGNER.toLowerCase());
    for (const { signer } of [...created, ...outcomes]) expect(signer).toBe(SIGNER);
    for (const { payload } of outcomes) expect(payload.to).toBe(RECIPIENT);
    const [suspended] = await fencepost.suspend(SIGNER, { reason: "to see how it is named" });
    expect(suspended).toMatchObject({ signer: SIGNER, suspended: true });
    for await (const { seq, epoch, feedEpoch, signer } of fencepost.completions()) {
      expect([epoch, feedEpoch, signer]).toEqual([1, 1, SIGNER]);
      if (seq === 15) break;
    }
    const elsewhere = fencepost.completions({ after: 3, epoch: 9 }).next();
    await expect(elsewhere).rejects.toMatchObject({ code: "EPOCH_CHANGED", epoch: 1 });
  });

  it("refuses invalid requests with the same error codes as the service", async ({ embed, edr, database }) => {
    const fencepost = await embed.create(edr.url);
    const refused = await fencepost.send({ ...transfer(0), signer: RECIPIENT }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(FencepostError);
    expect(refused).toMatchObject({ code: "UNKNOWN_SIGNER" });
    await expect(fencepost.send({ signer: SIGNER, payload: { to: "0x12" } })).rejects.toMatchObject({
      code: "INVALID_REQUEST",
    });
    await expect(fencepost.get("01234567-89ab-7def-8123-456789abcdef")).rejects.toMatchObject({ code: "NOT_FOUND" });
    await expect(fencepost.waitFor("nothing")).rejects.toBeInstanceOf(FencepostError);
    expect(await storedTransactions(database)).toEqual([]);
  });

  it("reports invalid options in one error", async ({ database }) => {
    const chains = [{ rpc: "http://127.0.0.1:1" }];
    await expect(createFencepost({ databaseUrl: database.url, chains, signers: [] })).rejects.toThrow(/signer/i);
    await expect(
      createFencepost({ databaseUrl: database.url, chains, signers: KEYS, leaseDuration: "1" as "1s" }),
    ).rejects.toThrow(/leaseDuration.*not a duration/i);
    await expect(createFencepost({ databaseUrl: database.url, chains, signers: KEYS })).rejects.toThrow(
      /127\.0\.0\.1:1/,
    );
  });

  it("stops waiting at a timeout or abort, and the transaction continues", async ({ embed, simulated }) => {
    const fencepost = await embed.create(simulated.url, { confirmations: 1 });
    // The base fee is above the cap, but not so far that the request would be refused at once.
    simulated.chain.setBaseFee(19n * 10n ** 9n);
    const { txId } = await fencepost.send({
      ...transfer(0),
      payload: { to: RECIPIENT, gas: 21_000, maxFeePerGas: 10n ** 10n, maxPriorityFeePerGas: 1n },
    });
    await expect(fencepost.waitFor(txId, { timeoutMs: 1 })).rejects.toMatchObject({ code: "TIMEOUT" });
    const abort = new AbortController();
    const waiting = fencepost.waitFor(txId, { signal: abort.signal });
    abort.abort(new Error("changed my mind"));
    await expect(waiting).rejects.toThrow("changed my mind");
    simulated.chain.setBaseFee(10n ** 9n);
    expect(await fencepost.waitFor(txId)).toMatchObject({ state: "CONFIRMED" });
  });

  it("streams each stable block once and in order", async ({ embed, simulated }) => {
    const fencepost = await embed.create(simulated.url);
    await waitUntil(() => simulated.chain.head.number > 10, "there are blocks");
    const heights: number[] = [];
    for await (const { number, hash } of fencepost.blocks({ depth: 3, from: 2 })) {
      heights.push(number);
      expect(number).toBeLessThanOrEqual(simulated.chain.head.number - 3 + 1);
      if (number > 8) expect(simulated.chain.blocks.byNumber(number)?.hash).toBe(hash);
      if (number === 12) simulated.chain.reorg(2);
      if (number === 25) break;
    }
    expect(heights).toEqual(range(24).map((index) => index + 2));
  });

  it("leaves no connection open after close", async ({ embed, simulated, database }) => {
    const fencepost = await embed.create(simulated.url);
    await fencepost.send(transfer(0));
    const following = (async () => {
      for await (const _ of fencepost.completions({ after: 1_000 }));
    })();
    simulated.chain.setBaseFee(10n ** 15n);
    const { txId } = await fencepost.send(transfer(1));
    const waiting = fencepost.waitFor(txId).catch((error: Error) => error.message);
    await fencepost.close();
    await following;
    expect(await waiting).toMatch(/CLOSED/);
    await expect(fencepost.get(txId), "the database is not to blame").rejects.toThrow(/CLOSED/);
    await fencepost.close();
    expect(await database.query("SELECT 1 FROM fencepost.lane WHERE owner_instance IS NOT NULL")).toEqual([]);
    const open = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'fencepost' AND datname = current_database()";
    await waitUntil(async () => (await database.query(open)).length === 0, "no connection is left");
  });
});

describe("send inside the caller's database transaction", () => {
  it("creates the transaction only at COMMIT", async ({ embed, edr, database }) => {
    const fencepost = await embed.create(edr.url);
    const client = await embed.client();
    const txId = await order(fencepost, client, 1);
    const other = await fencepost.send(transfer(0));
    expect(
      await fencepost.waitFor(other.txId),
      "an open transaction of a caller holds up no other create",
    ).toMatchObject({ nonce: 0 });
    await expect(fencepost.get(txId)).rejects.toMatchObject({ code: "NOT_FOUND" });
    await client.query("COMMIT");
    expect(await fencepost.waitFor(txId)).toMatchObject({ txId, state: "CONFIRMED", nonce: 1, requestId: "order-1" });
    expect(await database.query("SELECT id FROM orders")).toEqual([{ id: "order-1" }]);
    expect(await intakeRows(database)).toEqual([]);
    await audit({ database, rpcUrl: edr.url });
  });

  it("leaves nothing after ROLLBACK, or after the caller's crash", async ({ embed, edr, database }) => {
    const fencepost = await embed.create(edr.url);
    const rolledBack = await embed.client();
    const undone = await order(fencepost, rolledBack, 1);
    await rolledBack.query("ROLLBACK");
    const killed = await embed.client();
    const lost = await order(fencepost, killed, 2);
    const [{ pid }] = (await killed.query("SELECT pg_backend_pid() AS pid")).rows as [{ pid: number }];
    await database.query("SELECT pg_terminate_backend($1)", [pid]);
    const committed = await embed.client();
    const kept = await order(fencepost, committed, 3);
    await committed.query("COMMIT");
    expect(await fencepost.waitFor(kept)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    for (const txId of [undone, lost]) await expect(fencepost.get(txId)).rejects.toMatchObject({ code: "NOT_FOUND" });
    // Check that both request ids are free again and that no nonce was used.
    expect(await fencepost.send(transfer(1, "order"))).toMatchObject({ nonce: 1 });
    expect(await database.query("SELECT id FROM orders")).toEqual([{ id: "order-3" }]);
  });

  it("keeps the order of the calls", async ({ embed, simulated, database }) => {
    const fencepost = await embed.create(simulated.url);
    const client = await embed.client();
    await client.query("BEGIN");
    const sent: string[] = [];
    for (const index of range(30)) sent.push((await fencepost.send(transfer(index, "ordered"), { client })).txId);
    await Promise.all([
      client.query("COMMIT"),
      ...range(30).map((index) => fencepost.send(transfer(100 + index, "beside"))),
    ]);
    await untilSettled(database, 60);
    const { stored } = await audit({ database, rpcUrl: simulated.url });
    const nonces = new Map(stored.map(({ tx_id, nonce }) => [tx_id, Number(nonce)]));
    const ordered = sent.map((txId) => nonces.get(txId) as number);
    expect(ordered).toEqual(ordered.toSorted((a, b) => a - b));
  });

  it("leads to the existing transaction if the request id was used", async ({ embed, simulated, database }) => {
    const fencepost = await embed.create(simulated.url);
    const client = await embed.client();
    await client.query("BEGIN");
    const alias = await fencepost.send(transfer(1, "twice"), { client });
    const reused = await fencepost.send({ ...transfer(9), requestId: "twice-2" }, { client });
    const [first, second] = await Promise.all([1, 2].map((index) => fencepost.send(transfer(index, "twice"))));
    await client.query("COMMIT");
    const refused = await fencepost.waitFor(reused.txId);
    expect(refused).toMatchObject({ state: "FAILED_FINAL", subState: "REQUEST_ID_REUSED", nonce: null });
    const outcome = await fencepost.waitFor(alias.txId);
    expect(outcome).toMatchObject({ txId: first?.txId, state: "CONFIRMED" });
    expect(await fencepost.waitFor(second?.txId as string)).toMatchObject({ state: "CONFIRMED" });
    const { stored, completions } = await audit({ database, rpcUrl: simulated.url });
    expect(stored).toHaveLength(3);
    expect(completions).toHaveLength(3);
    expect((await fencepost.send(transfer(2, "twice"))).txId).toBe(second?.txId);
  });

  it("ends as FAILED_FINAL/REJECTED if the call would revert", async ({ embed, simulated, database }) => {
    simulated.chain.revertCallsTo("0x00000000000000000000000000000000000000aa", "0x");
    const fencepost = await embed.create(simulated.url);
    const client = await embed.client();
    const txId = await order(fencepost, client, 1);
    await client.query("COMMIT");
    expect(await fencepost.waitFor(txId)).toMatchObject({ state: "FAILED_FINAL", subState: "REJECTED", nonce: null });
    for await (const completion of fencepost.completions()) {
      expect(completion).toMatchObject({
        txId,
        state: "FAILED_FINAL",
        subState: "REJECTED",
        settled: true,
        nonce: null,
      });
      break;
    }
    simulated.chain.revertCallsTo("0x00000000000000000000000000000000000000aa", null);
    expect(await fencepost.send(transfer(2)), "its nonce was not spent").toMatchObject({ nonce: 0 });
    await untilSettled(database, 2);
  });

  it("is processed exactly once, even if the lane's owner changes", async ({ embed, simulated, database }) => {
    const taken: string[] = [];
    const onEvent = (event: TelemetryEvent) => {
      if (event.type === "tx.transition" && event.event === "allocate") taken.push(event.txId);
    };
    const first = await embed.create(simulated.url, { onEvent });
    const second = await embed.create(simulated.url, { onEvent });
    const clients = await Promise.all(range(4).map(() => embed.client()));
    const send = async (from: number) => {
      await Promise.all(
        clients.map(async (client, at) => {
          const face = at % 2 === 0 ? first : second;
          await client.query("BEGIN");
          for (const index of range(10)) await face.send(transfer(from + at * 10 + index, "shared"), { client });
          await client.query("COMMIT");
        }),
      );
    };
    await send(0);
    await waitUntil(() => taken.length > 0, "the owner has begun");
    const closing = first.close();
    await send(100).catch((error: unknown) => {
      throw new Error("inserting needs no owner", { cause: error });
    });
    await closing;
    await untilSettled(database, 80);
    expect(taken.toSorted()).toEqual([...new Set(taken)].toSorted());
    expect(taken).toHaveLength(80);
    await audit({ database, rpcUrl: simulated.url });
  });

  it("is processed by the next node if no node ran at the commit", async ({ embed, simulated, database }) => {
    const first = await embed.create(simulated.url);
    const client = await embed.client();
    const txId = await order(first, client, 1);
    await first.close();
    await client.query("COMMIT");
    const next = await embed.create(simulated.url);
    expect(await next.waitFor(txId)).toMatchObject({ state: "CONFIRMED", nonce: 0 });
    await audit({ database, rpcUrl: simulated.url });
  });
});

describe("operator actions through the library", () => {
  it("can suspend a lane and resume the lane", async ({ simulated, embed }) => {
    const asked: StuckContext[] = [];
    const decide = (context: StuckContext): StuckDecision => {
      asked.push(context);
      return { action: "CANCEL", reason: "nobody wants it" };
    };
    const fencepost = await embed.create(simulated.url, { stuckHook: { decide } });
    const [lane] = await fencepost.suspend(SIGNER, { reason: "maintenance" });
    expect(lane).toMatchObject({ suspendedBy: "OPERATOR" });
    const { txId } = await fencepost.send(transfer(0));
    const { txId: other } = await fencepost.send(transfer(1));
    await fencepost.resolve(txId, { reason: "please decide" });
    await fencepost.replace(other, { reason: "another amount", payload: { to: RECIPIENT, value: 77n, gas: 21_000n } });
    expect(asked).toMatchObject([{ trigger: "operator", txId, state: "ALLOCATED" }]);
    await fencepost.resume(SIGNER, { reason: "done" });
    expect(await fencepost.waitFor(txId, WAIT)).toMatchObject({ state: "FAILED_FINAL", subState: "CANCELLED" });
    expect(await fencepost.waitFor(other, WAIT)).toMatchObject({ state: "CONFIRMED", subState: "REPLACED" });
    const { history = [] } = await fencepost.get(txId, { include: ["history"] });
    expect(history.filter(({ actor }) => actor !== null)).toMatchObject([
      { event: "amend", actor: "hook", audit: { requestedBy: "operator:embedded", action: "CANCEL" } },
    ]);
    await expect(fencepost.cancel(other, { reason: "too late" })).rejects.toMatchObject({ code: "CONFLICT" });
  });
});

const WAIT = { timeoutMs: 60_000 };
