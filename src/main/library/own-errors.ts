/** Errors that only the library throws, so that they are no part of the SDK. */
import { FencepostError } from "../../client/error-classes.ts";

/** Options of `createFencepost` are wrong. `path`: the first one, as the caller wrote it. `mistakes`: all of them. */
export class ConfigurationError extends FencepostError {
  declare readonly mistakes: readonly string[];

  constructor(path: string, mistakes: readonly string[], cause?: unknown) {
    super({ code: "CONFIGURATION", status: 0, detail: mistakes.join("\n") }, { cause });
    Object.assign(this, { path, mistakes });
  }
}

/** `close()` was called. */
export class ClosedError extends FencepostError {
  constructor() {
    super({ code: "CLOSED", status: 0, detail: "close() was called" });
  }
}
