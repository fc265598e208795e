import { randomUUID } from "node:crypto";
import { createHttpPeers, type HttpPeersOptions } from "../../src/adapters/peers/http-peers.ts";
import { createKeyPair } from "../../src/adapters/system/entropy.ts";
import type { InstanceRecord } from "../../src/ports/lease-store.ts";
import { createManualClock } from "../doubles/manual-clock.ts";
import { type RecordedTelemetry, recordTelemetry } from "./recorded-telemetry.ts";
import { sampleInstance } from "./scripted-api.ts";

export type TestedPeers = ReturnType<typeof createHttpPeers> & {
  readonly telemetry: RecordedTelemetry;
  /** The reasons for which this process refused requests of other nodes. */
  refusals(): readonly string[];
};

/** The rows in which nodes find each other, without a database. */
export class PeerRows {
  rows: InstanceRecord[] = [];

  /** Creates the connections of one process to other nodes. */
  peers(options: Partial<HttpPeersOptions> = {}): TestedPeers {
    const telemetry = recordTelemetry();
    const peers = createHttpPeers({
      keys: createKeyPair(),
      secrets: [],
      urlPatterns: null,
      readInstances: async () => this.rows,
      clock: createManualClock(),
      telemetry,
      ...options,
    });
    const refusals = () => telemetry.events.flatMap((event) => (event.type === "peer.refused" ? [event.reason] : []));
    return Object.assign(peers, { telemetry, refusals });
  }

  /** Adds a process's heartbeat row, so that other processes find it. */
  register(peers: Pick<TestedPeers, "introduce">, url: string): InstanceRecord {
    const instanceId = randomUUID();
    const row = sampleInstance({ instanceId, url, ...peers.introduce(instanceId, url) });
    this.rows = [...this.rows, row];
    return row;
  }

  change(instanceId: string, change: Partial<InstanceRecord>): void {
    this.rows = this.rows.map((row) => (row.instanceId === instanceId ? { ...row, ...change } : row));
  }
}
