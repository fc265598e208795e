import { FencepostError } from "../client/error-classes.ts";

interface Storage {
  run<T>(value: string, work: () => T): T;
  getStore(): string | undefined;
}

type Builtins = {
  readonly process?: { getBuiltinModule?(name: string): { readonly AsyncLocalStorage: new () => Storage } | undefined };
};

/** AsyncLocalStorage is not imported statically: browsers lack it, and it is only needed for `withRequestId`. */
const AsyncLocalStorage = (globalThis as Builtins).process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
const scope = AsyncLocalStorage === undefined ? null : new AsyncLocalStorage();

/**
 * Gives the send within `work` a request id. A send that is repeated with the same id creates no second transaction.
 * Wallet libraries have no parameter for a request id, so it is passed through AsyncLocalStorage, across every await.
 *
 * @example
 * const hash = await withRequestId("order-42", () => wallet.sendTransaction({ to, value: 1n }));
 */
export function withRequestId<T>(requestId: string, work: () => T): T {
  if (scope === null) throw new FencepostError({ code: "CONFIGURATION", status: 0, detail: NO_SCOPE });
  return scope.run(requestId, work);
}

const NO_SCOPE = "withRequestId needs AsyncLocalStorage: Node, Deno, Bun or a worker that has it";

/** The current request id: the caller's, or a new one. */
export function requestIdHere(): string {
  return scope?.getStore() ?? crypto.randomUUID();
}
