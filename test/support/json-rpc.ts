import type { FastifyInstance } from "fastify";
import { createHttpApp } from "../../src/adapters/http/app.ts";
import type { HttpServerOptions, Refusal } from "../../src/adapters/http/exchange/options.ts";
import type { Address, Hex } from "../../src/domain/lane.ts";
import { FakeSigner } from "../doubles/memory-signer.ts";
import { httpOptions } from "./http-app.ts";
import { CHAIN_ID, SIGNER, SIGNERS, TO, type World, type WorldNode } from "./world.ts";

export interface RpcAnswer<T = unknown> {
  readonly id?: unknown;
  readonly result?: T;
  readonly error?: {
    readonly code: number;
    readonly message: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

export interface AskOptions {
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The `/rpc` interface of a node that runs on a simulated clock. */
export class RpcFace {
  readonly app: FastifyInstance;
  readonly refusals: Refusal[] = [];
  readonly routes: string[] = [];
  private readonly world: World;

  constructor(world: World, { node }: WorldNode, options: Partial<HttpServerOptions> = {}) {
    this.world = world;
    const own = {
      ...{ clock: world.clock, checksum: (address: Address) => address },
      onRefused: (refusal: Refusal) => void this.refusals.push(refusal),
      onResponse: ({ route }: { readonly route: string }) => void this.routes.push(route),
    };
    this.app = createHttpApp({ ...httpOptions(), api: node.api, ...own, ...options }).app;
  }

  async post(body: unknown, { url = "/rpc", headers = {} }: AskOptions = {}) {
    const payload = typeof body === "string" ? body : JSON.stringify(body);
    const sent = { "content-type": "application/json", ...headers };
    const { statusCode, body: text } = await this.app.inject({ method: "POST", url, headers: sent, payload });
    return { status: statusCode, text };
  }

  /** Posts a request and advances time until it is answered. */
  async ask<T = RpcAnswer>(body: unknown, options: AskOptions = {}): Promise<T> {
    const { text } = await this.world.settle(this.post(body, options));
    return JSON.parse(text) as T;
  }

  call<T = unknown>(method: string, params?: readonly unknown[], options: AskOptions = {}): Promise<RpcAnswer<T>> {
    return this.ask<RpcAnswer<T>>(call(method, params), options);
  }

  send(overrides: object = {}, options: AskOptions = {}): Promise<RpcAnswer<Hex>> {
    return this.call<Hex>("eth_sendTransaction", [transaction(overrides)], options);
  }
}

let lastId = 0;

export function call(method: string, params?: readonly unknown[]) {
  return { jsonrpc: "2.0", id: ++lastId, method, ...(params === undefined ? {} : { params }) };
}

/** A transaction with gas and fees, so that nothing has to be read from the chain. */
export function transaction(overrides: object = {}) {
  const fees = { maxFeePerGas: "0x4a817c800", maxPriorityFeePerGas: "0x3b9aca00" };
  return { from: SIGNER, to: TO, value: "0x1", gas: "0x5208", ...fees, ...overrides };
}

const signer = new FakeSigner([...SIGNERS, `0x${"c".repeat(40)}`]);
export const STRANGER: Address = `0x${"c".repeat(40)}`;

/** A transaction that a caller signs itself, at any nonce. */
export async function signedBy(from: Address, nonce: number, value = 5n, cap = 20_000_000_000n): Promise<Hex> {
  const tip = cap < 1_000_000_000n ? cap : 1_000_000_000n;
  const fees = { type: "eip1559", maxFeePerGas: cap, maxPriorityFeePerGas: tip } as const;
  const unsigned = { chainId: CHAIN_ID, nonce, to: TO, data: "0x", value, gas: 21_000n, fees, accessList: [] } as const;
  const [made] = await signer.sign(from, [unsigned]);
  return made?.rawTransaction as Hex;
}
