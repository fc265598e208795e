type Method = (...parameters: unknown[]) => Promise<unknown>;

/** Wraps a port so that every call is delayed twice: before its effect and before its response. */
export function delayed<T extends object>(port: T, pause: () => Promise<void>): T {
  return new Proxy(port, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== "function") return member;
      return async (...parameters: unknown[]) => {
        await pause();
        try {
          return await (member as Method).apply(target, parameters);
        } finally {
          await pause();
        }
      };
    },
  });
}
