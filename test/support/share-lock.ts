import { Client } from "pg";
import { waitUntil } from "./wait-until.ts";

const SHARERS = 16;
/**
 * Number of queries that a session makes while it holds the lock. Between two holds it is without the lock for only
 * about one query. So at any moment some session holds the lock.
 */
const TURNS = 5;

/**
 * Starts sixteen sessions that share the lock on a lane's row; each holds it again and again for a short time. Resolves
 * when every session has held the lock. They continue until the returned function is called.
 */
export async function shareLock(databaseUrl: string, signer: string): Promise<() => Promise<void>> {
  let wanted = true;
  const rounds = new Map<number, number>();
  const share = async (place: number): Promise<void> => {
    const client = new Client({ connectionString: databaseUrl });
    client.on("error", () => undefined);
    await client.connect();
    while (wanted) {
      await client.query("BEGIN");
      await client.query("SELECT 1 FROM fencepost.lane WHERE signer = $1 FOR SHARE", [signer]);
      for (let turn = 0; turn < TURNS; turn++) await client.query("SELECT 1");
      await client.query("COMMIT");
      rounds.set(place, (rounds.get(place) ?? 0) + 1);
    }
    await client.end();
  };
  const sharing = Promise.all(Array.from({ length: SHARERS }, (_, place) => share(place)));
  const stop = async (): Promise<void> => {
    wanted = false;
    await sharing;
  };
  await waitUntil(() => rounds.size === SHARERS, "all share the lock");
  return stop;
}
