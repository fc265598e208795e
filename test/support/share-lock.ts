import { Client } from "pg";
import { waitUntil } from "./wait-until.ts";

const SHARERS = 16;
/**
 * Each session holds the lock for this many parts of the time and releases it for one, so that some session holds it at
 * any moment.
 */
const TURNS = 5;

/**
 * Sixteen sessions that share the lock on a lane's row, each repeatedly for a moment. Resolves when every one of them
 * has held it; they continue until the returned function is called.
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
