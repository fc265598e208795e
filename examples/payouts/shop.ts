/** A shop that pays out. An order and its payment are written in one database transaction: both exist, or neither. */
import type { Address, FeedStore, Fencepost } from "fencepost";
import type { Pool } from "pg";

export interface Order {
  readonly id: string;
  readonly recipient: Address;
  readonly wei: bigint;
}

export interface Shop {
  readonly pool: Pool;
  readonly fencepost: Fencepost;
  /** Who pays. */
  readonly signer: Address;
}

export const TABLES = `
  CREATE TABLE IF NOT EXISTS orders (
    id text PRIMARY KEY,
    recipient text NOT NULL,
    wei numeric NOT NULL,
    state text NOT NULL DEFAULT 'PAYING',
    tx_hash text
  );
  CREATE TABLE IF NOT EXISTS feed_place (one boolean PRIMARY KEY DEFAULT true CHECK (one), seq bigint, epoch bigint);
  INSERT INTO feed_place VALUES (true, 0, 0) ON CONFLICT DO NOTHING;
`;

/** May be called again with the same order, after a crash for example: it is still one row and one payment. */
export async function place({ pool, fencepost, signer }: Shop, { id, recipient, wei }: Order): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const insert = "INSERT INTO orders (id, recipient, wei) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    const { rowCount } = await client.query(insert, [id, recipient, wei]);
    const isNew = rowCount === 1;
    if (isNew) await fencepost.send({ signer, requestId: id, payload: { to: recipient, value: wei } }, { client });
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

/**
 * Reads outcomes for ever. The place is saved after the order is: a crash between the two delivers an outcome twice, and the
 * second UPDATE changes nothing. REORGED takes an outcome back, and another one follows; STUCK is not over yet.
 */
export async function keepBooks({ pool, fencepost }: Shop, signal: AbortSignal): Promise<void> {
  for await (const { requestId, state, txHash } of fencepost.completions({ store: placeIn(pool) }, { signal })) {
    const outcome = state === "CONFIRMED" ? "PAID" : state === "FAILED_FINAL" ? "FAILED" : "PAYING";
    await pool.query("UPDATE orders SET state = $2, tx_hash = $3 WHERE id = $1", [requestId, outcome, txHash]);
  }
}

function placeIn(pool: Pool): FeedStore {
  return {
    load: async () => {
      const { rows } = await pool.query<{ seq: string; epoch: string }>(
        "SELECT seq, epoch FROM feed_place WHERE seq > 0",
      );
      return rows[0] && { seq: Number(rows[0].seq), epoch: Number(rows[0].epoch) };
    },
    save: ({ seq, epoch }) => pool.query("UPDATE feed_place SET seq = $1, epoch = $2", [seq, epoch]),
  };
}
