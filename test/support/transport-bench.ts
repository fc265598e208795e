import { afterEach } from "vitest";
import { type RpcReply, RpcUnreachable } from "../../src/adapters/evm/rpc/rpc-errors.ts";
import {
  createTransport,
  type RpcReport,
  type RpcTransport,
  type TransportOptions,
} from "../../src/adapters/evm/rpc/transport.ts";
import type { RpcCall } from "../../src/adapters/evm/rpc/wire.ts";
import { createManualClock, type ManualClock } from "../doubles/manual-clock.ts";
import { type FaultyRpc, startFaultyRpc } from "./faulty-rpc.ts";

/** One transport on one scripted endpoint that returns what it receives (`echo`). */
export interface TransportBench {
  readonly server: FaultyRpc;
  readonly rpc: RpcTransport;
  readonly clock: ManualClock;
  readonly reports: readonly RpcReport[];
}

/** Creates benches that are closed after each test of the calling file. */
export function useTransportBench(): (options?: Partial<TransportOptions>) => Promise<TransportBench> {
  const closers: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0)) await close();
  });
  return async (options = {}) => {
    const server = await startFaultyRpc();
    const clock = createManualClock();
    const reports: RpcReport[] = [];
    const rpc = createTransport({ url: server.url, clock, report: (each) => void reports.push(each), ...options });
    server.on("echo", ([value]) => value);
    closers.push(
      () => rpc.close(),
      () => server.close(),
    );
    return { server, rpc, clock, reports };
  };
}

export function echo(value: unknown): RpcCall {
  return { method: "echo", params: [value] };
}

export function echoes(count: number): readonly RpcCall[] {
  return Array.from({ length: count }, (_, index) => echo(index));
}

/** The result of each reply, or the kind of its error. */
export function values(replies: readonly RpcReply[]): readonly unknown[] {
  return replies.map((reply) => (reply.ok ? reply.result : kindOf(reply.error)));
}

export function kindOf(error: unknown): string {
  return error instanceof RpcUnreachable ? error.kind : `answer ${String(error)}`;
}

export async function failure(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => "it succeeded",
    (error: unknown) => error,
  );
}

export function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
