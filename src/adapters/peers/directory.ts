/**
 * Who may be written to, and whose requests are taken: the instances of this database that live, by the keys they publish.
 * Learned from the heartbeat rows that the lease reads anyway, and read once more for an instance that is not known yet.
 *
 * Whoever can write those rows could send by the intake table anyway. Against that there is a secret which the nodes share
 * outside the database: where it is configured, a row whose key, instance and URL are not vouched for by it counts for nothing.
 */
import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";
import type { Clock } from "../../ports/clock.ts";
import type { InstanceKey, InstanceRecord } from "../../ports/lease-store.ts";
import { readPublicKey, writePublicKey } from "./request-head.ts";
import { UsedNumbers } from "./used-numbers.ts";

export interface DirectoryOptions {
  readonly keys: { readonly publicKey: KeyObject; readonly privateKey: KeyObject };
  /** The first vouches for this process, and each of them for others. None: whatever key stands in a row is believed. */
  readonly secrets: readonly string[];
  readonly readInstances: () => Promise<readonly InstanceRecord[]>;
  readonly clock: Pick<Clock, "monotonicMs">;
}

/** Another process, under one of its instances. */
export interface KnownPeer extends Pick<InstanceRecord, "instanceId" | "url"> {
  /** Null: it has published none that can be read. */
  readonly key: KeyObject | null;
  /** False: a secret is configured, and vouches for something else. */
  readonly isVouchedFor: boolean;
  readonly used: UsedNumbers;
  readonly published: string;
  isLive: boolean;
  heartbeat: number;
}

/** Of a process that has registered again and again. Its requests of a moment ago may still name the one before. */
const SELVES = 16;
/** However many strangers knock. */
const READ_EVERY_MS = 100;

export class PeerDirectory {
  private readonly options: DirectoryOptions;
  private readonly publicKey: string;
  private readonly known = new Map<string, KnownPeer>();
  private byUrl: ReadonlyMap<string, KnownPeer> = new Map();
  private selves: readonly string[] = [];
  private reading: Promise<void> | null = null;
  private readAtMs = Number.NEGATIVE_INFINITY;

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
    // What expired is kept, and with it the numbers it used: a database's clock that is set back lets it live again.
    const kept = new Set(undead.map(({ instanceId }) => instanceId));
    for (const instanceId of this.known.keys()) if (!kept.has(instanceId)) this.known.delete(instanceId);
    for (const record of undead) this.learn(record);
    const live = undead.flatMap(({ instanceId, expired }) => (expired ? [] : (this.known.get(instanceId) ?? [])));
    // Of several at one URL the last counts: a process that was started again in its place, and before all one that we trust.
    const strangersFirst = [...live.filter((each) => !isTrusted(each)), ...live.filter(isTrusted)];
    this.byUrl = new Map(strangersFirst.map((each) => [each.url, each]));
  }

  isUs(instanceId: string): boolean {
    return this.selves.includes(instanceId);
  }

  /** As whom this process writes: the newest of its instances that others can know of. */
  get self(): KnownPeer | null {
    const known = this.selves.flatMap((instanceId) => this.known.get(instanceId) ?? []);
    return known.at(-1) ?? null;
  }

  /** Who is reached there; null: no live instance of this database. Throws where that cannot be read. */
  async at(url: string): Promise<KnownPeer | null> {
    const known = this.byUrl.get(url);
    if (known === undefined || !isTrusted(known)) await this.lookAgain();
    return this.byUrl.get(url) ?? null;
  }

  /** Null: dead, or never registered. Throws where that cannot be read. */
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
    if (this.reading === null && nowMs - this.readAtMs >= READ_EVERY_MS) {
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

/** With the URL: a key that is copied into a row of somebody else's would have requests sent there. */
function proofOf(secret: string, { instanceId, url, publicKey }: Claim): string {
  const claim = `fencepost instance key 1\n${instanceId}\n${url}\n${publicKey}\n`;
  return createHmac("sha256", secret).update(claim).digest("base64url");
}

function isSame(a: string, b: string): boolean {
  const [left, right] = [Buffer.from(a), Buffer.from(b)];
  return left.length === right.length && timingSafeEqual(left, right);
}
