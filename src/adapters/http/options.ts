import type { FencepostApi } from "../../application/api.ts";
import type { Address } from "../../domain/lane.ts";
import type { Clock } from "../../ports/clock.ts";

export interface HttpServerOptions {
  readonly api: FencepostApi;
  /** "none" leaves every route open; an empty list closes every route that is not open by itself. */
  readonly apiKeys: readonly ApiKey[] | "none";
  readonly metrics: () => Promise<{ readonly contentType: string; readonly body: string }>;
  /** EIP-55. Called once per address: answers are remembered. */
  readonly checksum: (address: Address) => string;
  readonly version: string;
  readonly clock: Clock;
  /** Served without a key, by exact path. */
  readonly files?: ReadonlyMap<string, StaticFile>;
  readonly logger?: HttpLogger;
  /** For `http_request_duration_seconds`: once per answer. */
  readonly onResponse?: (report: ResponseReport) => void;
}

export interface ApiKey {
  readonly name: string;
  readonly secret: string;
  readonly scopes?: readonly string[];
}

export interface StaticFile {
  readonly contentType: string;
  readonly body: Buffer | string;
}

export interface HttpLogger {
  error(fields: object, message: string): void;
}

export interface ResponseReport {
  readonly method: string;
  /** The route's pattern, never the path: a label must stay bounded. */
  readonly route: string;
  readonly status: number;
  readonly durationMs: number;
}
