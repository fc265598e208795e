import type { FastifyInstance } from "fastify";
import { createHttpApp } from "../../src/adapters/http/app.ts";
import type { HttpServerOptions } from "../../src/adapters/http/exchange/options.ts";
import type { FencepostApi } from "../../src/application/operations/calls.ts";
import { createMask } from "../../src/domain/text/mask.ts";
import { createManualClock } from "../doubles/manual-clock.ts";
import { sampleChecksum, scriptedApi } from "./scripted-api.ts";

export function httpOptions(
  script: Partial<FencepostApi> = {},
  options: Partial<HttpServerOptions> = {},
): HttpServerOptions {
  return {
    api: scriptedApi(script),
    apiKeys: "none",
    metrics: () => Promise.resolve({ contentType: "text/plain; version=0.0.4", body: "fencepost_up 1\n" }),
    checksum: sampleChecksum,
    version: "1.2.3",
    clock: createManualClock(),
    mask: createMask([]),
    ...options,
  };
}

export function httpApp(script: Partial<FencepostApi> = {}, options: Partial<HttpServerOptions> = {}): FastifyInstance {
  return createHttpApp(httpOptions(script, options)).app;
}
