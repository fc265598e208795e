/** The shop as a process: takes its orders from the one that started it, and ends when all are paid. */
import { asAddress, asHex, createFencepost } from "fencepost";
import { Pool } from "pg";
import { keepBooks, type Order, place, TABLES } from "./shop.ts";

const { DATABASE_URL = "", RPC_URL = "", SIGNER = "", SIGNER_KEY = "", ORDERS = "0" } = process.env;

const pool = new Pool({ connectionString: DATABASE_URL });
await pool.query(TABLES);
const fencepost = await createFencepost({
  databaseUrl: DATABASE_URL,
  chains: [{ rpc: RPC_URL, confirmations: 2, pollInterval: "100ms" }],
  signers: [asHex(SIGNER_KEY, "SIGNER_KEY")],
});
const shop = { pool, fencepost, signer: asAddress(SIGNER, "SIGNER") };
const closing = new AbortController();
const books = keepBooks(shop, closing.signal).catch((error: unknown) => {
  if (!closing.signal.aborted) throw error;
});

// After a crash they all come again, as from any queue that delivers at least once.
for (let n = 1; n <= Number(ORDERS); n++) {
  await place(shop, orderOf(n));
  console.log(`placed ${n}`);
}
const unpaid = async () => Number((await pool.query("SELECT 1 FROM orders WHERE state <> 'PAID'")).rowCount);
while ((await unpaid()) > 0) await new Promise((resolve) => setTimeout(resolve, 100));

closing.abort();
await books;
await fencepost.close();
await pool.end();

function orderOf(n: number): Order {
  return { id: `order-${n}`, recipient: `0x${(0x1000 + n).toString(16).padStart(40, "0")}`, wei: BigInt(n) };
}
