export type EmbeddedErrorCode =
  | "NOT_INSTALLED"
  | "UNSUPPORTED_PLATFORM"
  | "PORT_TAKEN"
  | "ALREADY_RUNNING"
  | "DIRECTORY_UNUSABLE"
  | "OTHER_VERSION"
  | "START_FAILED"
  | "ENDED";

/** Error of an embedded server. Its message is one line for people: the problem, and what to do. */
export class EmbeddedError extends Error {
  readonly code: EmbeddedErrorCode;

  constructor(code: EmbeddedErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EmbeddedError";
    this.code = code;
  }
}
