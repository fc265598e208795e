/**
 * The live instances of this database, with the keys that they publish: requests are sent only to them, and accepted
 * only from them. The data comes from the heartbeat rows that the lease reads anyway; an unknown instance is looked up
 * once more.
 *
 * Anybody who can write those rows could publish a key. Against that, nodes may share a secret outside the database:
 * then a row counts only if its proof covers key, instance and URL.
 */
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { InstanceKey, InstanceRecord } from "../../ports/lease-store.ts";
import { readPublicKey, writePublicKey } from "./request-head.ts";
import { UsedNumbers } from "./used-numbers.ts";

export interface DirectoryOptions {
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  /**
   * The first secret proves this process's key; each is accepted in proofs of others. Empty: keys in the rows are
   * trusted without proof.
   */
  readonly secrets: readonly string[];
  readonly readInstances: () => Promise<readonly InstanceRecord[]>;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Another process, identified by one of its instances. */
export interface KnownPeer extends Pick<InstanceRecord, "instanceId" | "url"> {
  /** Null if it has published no readable key. */
  readonly key: KeyObject | null;
  /** False if a secret is configured and the row's proof does not match it. */
  readonly isVouchedFor: boolean;
  readonly used: UsedNumbers;
  readonly published: string;
  isLive: boolean;
  heartbeat: number;
}

/** Number of own instance ids to keep: requests in flight may still name an earlier registration. */
const SELVES = 16;
/** Minimum pause between reads, so that requests from strangers cannot load the database. */
const READ_EVERY_MS = 100;

export class PeerDirectory {
  private readonly options: DirectoryOptions;
  private readonly publicKey: string;
  private readonly known = new Map<string, KnownPeer>();
  private byUrl: ReadonlyMap<string, KnownPeer> = new Map();
  private selves: readonly string[] = [];
  private reading: Promise<void> | null = null;
  private readAtMs: number | null = null;

  constructor(options: DirectoryOptions) {
    this.options = options;
    this.publicKey = writePublicKey(options.keys.publicKey);
  }

  introduce(instanceId: string, url: string): InstanceKey {
    this.selves = [...this.selves, instanceId].slice(-SELVES);
    const { publicKey } = this;
    const [secret] = this.options.secrets;
    return { publicKey, keyProof: secret === undefined ? null : proofOf(secret, { instanceId, url, publicKey }) };
  }

  know(instances: readonly InstanceRecord[]): void {
    const undead = instances.filter(({ dead }) => !dead);
    // Expired instances are kept with the request numbers that they used: if the database's clock is set back, they are
    // live again, and old requests must not be replayed.
    const kept = new Set(undead.map(({ instanceId }) => instanceId));
    for (const instanceId of this.known.keys()) if (!kept.has(instanceId)) this.known.delete(instanceId);
    for (const record of undead) this.learn(record);
    const live = undead.flatMap(({ instanceId, expired }) => (expired ? [] : (this.known.get(instanceId) ?? [])));
    // If several instances have one URL, the last in this list wins: a restarted process replaces its predecessor, and
    // a trusted one any other.
    const strangersFirst = [...live.filter((each) => !isTrusted(each)), ...live.filter(isTrusted)];
    this.byUrl = new Map(strangersFirst.map((each) => [each.url, each]));
  }

  isUs(instanceId: string): boolean {
    return this.selves.includes(instanceId);
  }

  /** The newest own instance that other nodes can know. */
  get self(): KnownPeer | null {
    const known = this.selves.flatMap((instanceId) => this.known.get(instanceId) ?? []);
    return known.at(-1) ?? null;
  }

  /** The live instance at the URL; null if there is none. Throws if the rows cannot be read. */
  async at(url: string): Promise<KnownPeer | null> {
    const known = this.byUrl.get(url);
    if (known === undefined || !isTrusted(known)) await this.lookAgain();
    return this.byUrl.get(url) ?? null;
  }

  /** Null if the instance is dead or unknown. Throws if the rows cannot be read. */
  async find(instanceId: string): Promise<KnownPeer | null> {
    if (!this.known.has(instanceId)) await this.lookAgain();
    const found = this.known.get(instanceId);
    return found?.isLive === true ? found : null;
  }

  private learn({ instanceId, url, publicKey, keyProof, counter, expired }: InstanceRecord): void {
    const before = this.known.get(instanceId);
    const published = JSON.stringify([url, publicKey, keyProof]);
    if (before?.published === published) {
      before.isLive = !expired;
      before.heartbeat = counter;
      return;
    }
    this.known.set(instanceId, {
      instanceId,
      url,
      key: publicKey === null ? null : readPublicKey(publicKey),
      isVouchedFor: this.isVouchedFor({ instanceId, url, publicKey: publicKey ?? "" }, keyProof),
      used: before?.used ?? new UsedNumbers(),
      published,
      isLive: !expired,
      heartbeat: counter,
    });
  }

  private isVouchedFor(claim: Claim, proof: string | null): boolean {
    const { secrets } = this.options;
    return secrets.length === 0 || secrets.some((secret) => isSame(proofOf(secret, claim), proof ?? ""));
  }

  private async lookAgain(): Promise<void> {
    const nowMs = this.options.clock.monotonicMs();
    if (this.reading === null && (this.readAtMs === null || nowMs - this.readAtMs >= READ_EVERY_MS)) {
      this.readAtMs = nowMs;
      const read = this.options.readInstances().then((instances) => this.know(instances));
      this.reading = read.finally(() => {
        this.reading = null;
      });
    }
    await this.reading;
  }
}

function isTrusted({ key, isVouchedFor }: KnownPeer): boolean {
  return key !== null && isVouchedFor;
}

type Claim = Pick<InstanceRecord, "instanceId" | "url"> & { readonly publicKey: string };

/** The proof covers the URL: otherwise a key copied into another row would attract requests to that row's URL. */
function proofOf(secret: string, { instanceId, url, publicKey }: Claim): string {
  const claim = `fencepost instance key 1\n${instanceId}\n${url}\n${publicKey}\n`;
  return createHmac("sha256", secret).update(claim).digest("base64url");
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
