/**
 * The API keys of the database, read continuously, so that every node refuses a revoked key within a second. If the
 * database does not answer, the last read stays valid for the length of a lease. After that a key's validity is
 * unknown, and its callers are asked to retry.
 */
import { unavailable } from "../domain/errors.ts";
import type { Principal, Quotas } from "../domain/keys/principal.ts";
import type { KeyRecord, KeyStore } from "../ports/key-store.ts";
import type { Ports } from "../ports/ports.ts";

interface LiveKeysPorts extends Pick<Ports, "clock"> {
  /** How long the last read keys stay valid if they cannot be read again, in ms. */
  readonly trustedMs: number;
  /** Default quotas, for API keys that define none. */
  readonly quotas: Quotas;
}

/** Interval between reads of the keys. With the time of the read itself, revoked keys are refused within a second. */
const READ_EVERY_MS = 500;

export class LiveKeys {
  private readonly ports;
  private readonly stopping = new AbortController();
  private principals: ReadonlyMap<string, Principal> = new Map();
  /** Monotonic time of the last successful read; null before the first. */
  private readAtMs: number | null = null;
  private reading: Promise<void> | null = null;

  constructor(ports: LiveKeysPorts) {
    this.ports = ports;
  }

  /** Starts reading the keys, once the database is reachable; ends with `stop`. */
  start(store: Pick<KeyStore, "apiKeys">): void {
    this.reading = this.read(store);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.reading;
  }

  /**
   * The API key whose secret has this SHA-256, in hex; null if there is none. UNAVAILABLE if the keys were never read,
   * or if a key matches and the last read is too old.
   */
  find(digest: string): Principal | null {
    if (this.readAtMs === null) throw unavailable("this node has not read the API keys of the database yet");
    const found = this.principals.get(digest) ?? null;
    const { clock, trustedMs } = this.ports;
    if (found === null || clock.monotonicMs() - this.readAtMs <= trustedMs) return found;
    throw unavailable("the database does not answer, so this API key cannot be checked");
  }

  private async read(store: Pick<KeyStore, "apiKeys">) {
    const { clock } = this.ports;
    while (!this.stopping.signal.aborted) {
      const beganMs = clock.monotonicMs();
      // If reading the API keys fails, the next poll repeats it.
      const keys = await store.apiKeys().catch(() => null);
      if (keys !== null) {
        const principals = keys.flatMap(({ secrets, ...terms }) =>
          secrets.map(({ digest }) => [digest, this.same(digest, principalOf(terms, this.ports.quotas))] as const),
        );
        this.principals = new Map(principals);
        this.readAtMs = beganMs;
      }
      await clock.sleep(READ_EVERY_MS, this.stopping.signal).catch(() => undefined);
    }
  }

  /** Returns the known object if it is unchanged, so that values derived from it stay cached. */
  private same(digest: string, read: Principal) {
    const known = this.principals.get(digest);
    return known !== undefined && textOf(known) === textOf(read) ? known : read;
  }
}

function principalOf({ name, scopes, signers, chains, ...own }: Omit<KeyRecord, "secrets">, usual: Quotas): Principal {
  return {
    name,
    scopes: new Set(scopes),
    signers: signers && new Set(signers),
    chains: chains && new Set(chains),
    createsPerSecond: own.createsPerSecond ?? usual.createsPerSecond,
    readsPerSecond: own.readsPerSecond ?? usual.readsPerSecond,
    queueShare: own.queueShare ?? usual.queueShare,
  };
}

function textOf({ scopes, signers, chains, ...rest }: Principal) {
  return JSON.stringify([[...scopes], signers && [...signers], chains && [...chains], rest]);
}
