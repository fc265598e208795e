import type { Clock } from "../../../src/ports/clock.ts";
import type { KeyRecord, KeyStore } from "../../../src/ports/key-store.ts";

/** The API keys of an in-memory database. */
export class MemoryKeys implements KeyStore {
  private readonly clock: Pick<Clock, "now">;
  private records: readonly KeyRecord[] = [];

  constructor(clock: Pick<Clock, "now">) {
    this.clock = clock;
  }

  async apiKeys(): Promise<readonly KeyRecord[]> {
    return this.records;
  }

  async addApiSecret(...[key, digest]: Parameters<KeyStore["addApiSecret"]>): ReturnType<KeyStore["addApiSecret"]> {
    const createdAt = this.clock.now();
    const known = this.records.find(({ name }) => name === key.name) ?? { ...key, createdAt, secrets: [] };
    const { secrets, createdAt: _, ...terms } = known;
    if (JSON.stringify(terms) !== JSON.stringify(key)) return "differs";
    if (secrets.length === 2) return "full";
    this.put(key.name, { ...known, secrets: [...secrets, { digest, createdAt }] });
    return "added";
  }

  async revokeApiKey(name: string, secret: string | null): Promise<boolean> {
    const known = this.records.find((each) => each.name === name);
    if (known === undefined) return false;
    const secrets = known.secrets.filter(({ digest }) => secret !== null && !digest.startsWith(secret));
    if (secret !== null && secrets.length === known.secrets.length) return false;
    this.put(name, secret === null ? null : { ...known, secrets });
    return true;
  }

  private put(name: string, record: KeyRecord | null): void {
    const others = this.records.filter((each) => each.name !== name);
    const all = record === null ? others : [...others, record];
    this.records = all.sort((a, b) => (a.name < b.name ? -1 : 1));
  }
}
