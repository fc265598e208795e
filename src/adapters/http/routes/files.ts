import { createHash } from "node:crypto";
import type { FastifyInstance } from "fastify";
import type { StaticFile } from "../exchange/options.ts";

/** Nothing inline, nothing from elsewhere: text that a caller chose can never become script on these pages. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export const PAGE_HEADERS = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
} as const;

/** Static files by exact path: no directory is ever listed or walked, so no path can climb out of it. */
export function fileRoutes(app: FastifyInstance, files: ReadonlyMap<string, StaticFile>): void {
  for (const [path, file] of files) {
    const etag = `"${createHash("sha256").update(file.body).digest("base64url").slice(0, 22)}"`;
    app.get(path, { config: { open: true, operators: true } }, (request, reply) => {
      reply.headers(PAGE_HEADERS).header("etag", etag);
      if (request.headers["if-none-match"] === etag) return reply.code(304).send();
      return reply.type(file.contentType).send(file.body);
    });
  }
}
