import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { keccak256 } from "viem";
import { systemClock } from "../../../src/adapters/system/clock.ts";
import type { Hex } from "../../../src/domain/lane.ts";
import { deferred } from "../deferred.ts";
import type { Database } from "../integration.ts";

/** Signed payloads that one node sent in one HTTP request, and when they arrived. */
export interface Packet {
  readonly atMs: number;
  readonly hashes: readonly Hex[];
}

export interface Hold {
  /** Resolves when the node is in the middle of a broadcast: its request was sent but has no response yet. */
  readonly reached: Promise<Packet>;
  release(): void;
}

export interface ChainWireOptions {
  readonly upstreamUrl: string;
  readonly nodeId: string;
  readonly database: Database;
}

/**
 * A proxy between one node and the chain. When a signed payload arrives, the proxy looks it up in the database before
 * it forwards it to the chain (invariant I6). The same bytes must be stored there, and this node must have stored its
 * right to send them.
 */
export class ChainWire {
  readonly url: string;
  readonly packets: Packet[] = [];
  readonly violations: string[] = [];
  private readonly options: ChainWireOptions;
  private readonly server: Server;
  private isCut = false;
  private held: { readonly reached: (packet: Packet) => void; readonly released: Promise<void> } | null = null;

  private constructor(server: Server, options: ChainWireOptions) {
    this.server = server;
    this.options = options;
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  }

  static async start(options: ChainWireOptions): Promise<ChainWire> {
    const server = createServer();
    server.keepAliveTimeout = 0;
    await once(server.listen(0, "127.0.0.1"), "listening");
    const wire = new ChainWire(server, options);
    server.on("request", (request, response) => void wire.pass(request, response).catch(() => response.destroy()));
    return wire;
  }

  get sent(): number {
    return this.packets.reduce((sum, { hashes }) => sum + hashes.length, 0);
  }

  /** Cuts the node off from the chain and closes open connections. */
  cut(): void {
    this.isCut = true;
    this.server.closeAllConnections();
  }

  repair(): void {
    this.isCut = false;
  }

  /** Holds back requests with signed payloads until the test releases them. */
  hold(): Hold {
    const reached = deferred<Packet>();
    const released = deferred<void>();
    const held = { reached: reached.resolve, released: released.promise };
    this.held = held;
    const release = () => {
      if (this.held === held) this.held = null;
      released.resolve();
    };
    return { reached: reached.promise, release };
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString("utf8");
    if (this.isCut) return void response.destroy();
    const payloads = payloadsOf(body);
    if (payloads.length > 0) await this.note(payloads);
    const answer = await fetch(this.options.upstreamUrl, { method: "POST", body });
    const text = await answer.text();
    if (this.isCut) return void response.destroy();
    response.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "text/plain" });
    response.end(text);
  }

  private async note(payloads: readonly Hex[]): Promise<void> {
    const packet = { atMs: systemClock.monotonicMs(), hashes: payloads.map((raw) => keccak256(raw)) };
    this.packets.push(packet);
    const known = await this.known(packet.hashes);
    packet.hashes.forEach((hash, index) => {
      const { raw, claims } = known.get(hash) ?? { raw: null, claims: [] };
      const by = `${hash}, sent by ${this.options.nodeId},`;
      if (raw === null) this.violations.push(`${by} is not stored`);
      else if (raw !== payloads[index]) this.violations.push(`${by} is stored with other bytes`);
      else if (!claims.includes(this.options.nodeId)) this.violations.push(`${by} was claimed by [${claims}]`);
    });
    const { held } = this;
    held?.reached(packet);
    await held?.released;
  }

  private async known(hashes: readonly Hex[]): Promise<ReadonlyMap<string, Known>> {
    const rows = await this.options.database.query<Known & { readonly tx_hash: string }>(
      `SELECT a.tx_hash, '0x' || encode(a.raw_transaction, 'hex') AS raw,
         ARRAY(SELECT DISTINCT c.node_id FROM tripwire.claim c WHERE c.tx_id = a.tx_id AND c.ordinal = a.ordinal) AS claims
       FROM fencepost.attempt a WHERE a.tx_hash = ANY ($1)`,
      [hashes],
    );
    return new Map(rows.map((row) => [row.tx_hash, row]));
  }
}

interface Known {
  readonly raw: string;
  readonly claims: readonly string[];
}

function payloadsOf(body: string): readonly Hex[] {
  if (!body.includes("eth_sendRawTransaction")) return [];
  const parsed = JSON.parse(body) as RpcCall | readonly RpcCall[];
  const calls = Array.isArray(parsed) ? (parsed as readonly RpcCall[]) : [parsed as RpcCall];
  return calls.filter(({ method }) => method === "eth_sendRawTransaction").map(({ params }) => params[0] as Hex);
}

interface RpcCall {
  readonly method: string;
  readonly params: readonly unknown[];
}
