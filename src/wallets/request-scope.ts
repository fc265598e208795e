interface Storage {
  run<T>(value: string, work: () => T): T;
  getStore(): string | undefined;
}

type Builtins = {
  readonly process?: { getBuiltinModule?(name: string): { readonly AsyncLocalStorage: new () => Storage } | undefined };
};

/** Asked for and not imported: a browser has none, and can do without until it names a request id. */
const AsyncLocalStorage = (globalThis as Builtins).process?.getBuiltinModule?.("node:async_hooks")?.AsyncLocalStorage;
const scope = AsyncLocalStorage === undefined ? null : new AsyncLocalStorage();

/**
 * Whatever `work` sends is this one request: sent again, by whom and how often soever, it is still one transaction. Wallet
 * libraries have no parameter for it: it goes along with the calls of `work`, through every await.
 */
export function withRequestId<T>(requestId: string, work: () => T): T {
  if (scope === null) throw new Error("withRequestId needs AsyncLocalStorage: Node, Deno, Bun or a worker that has it");
  return scope.run(requestId, work);
}

/** The id of the request that is being made: the caller's, or a new one. */
export function requestIdHere(): string {
  return scope?.getStore() ?? crypto.randomUUID();
}
