#!/usr/bin/env -S node --max-semi-space-size=64 --no-parallel-scavenge
// A node that notes how long each create waits, and for what. It writes this to the file BENCH_WAITS when it ends; SIGUSR2
// makes it begin anew. The product
// has no such clock, so it costs nothing there. The compiled modules of the build that is measured (BENCH_LAUNCHER) are
// used instead of its bundle, because a bundle exports no class.
import { subscribe } from "node:diagnostics_channel";
import { writeFileSync } from "node:fs";

const { BENCH_LAUNCHER: launcher, BENCH_WAITS: file } = process.env;
const built = (path) => import(new URL(`../dist/${path}`, `file://${launcher}`).href);
const [{ Creates }, { Committer }, { Plan }, { main }] = await Promise.all([
  built("application/stages/1-create/create.js"),
  built("application/writer/committer.js"),
  built("adapters/postgres/commit/plan.js"),
  built("main/cli.js"),
]);

/** Moments of each create, by transaction id, until it is answered. */
const moments = new Map();
const arrivals = new WeakMap();
/** Transaction ids of the commit that is under way for a lane, by the fence of its write. */
const committing = new Map();
/** When the last commit of a lane ended, by the fence of its writes. */
const ended = new WeakMap();
const samples = { read: [], prepare: [], lane: [], departure: [], lock: [], commit: [], answer: [] };

const note = (txId, name) => {
  const known = moments.get(txId) ?? {};
  known[name] = performance.now();
  moments.set(txId, known);
};
const idsOf = (write) => (write.kind === "allocate" ? write.items.map(({ intent }) => intent.txId) : []);

function around(prototype, name, wrap) {
  const original = prototype[name];
  if (typeof original !== "function") throw new Error(`this build has no ${name} to measure`);
  prototype[name] = wrap(original);
}

subscribe("http.server.request.start", ({ request }) => arrivals.set(request, performance.now()));
around(
  Creates.prototype,
  "create",
  (original) =>
    async function created(...given) {
      const asked = performance.now();
      const results = await original.apply(this, given);
      for (const { txId } of results) if (moments.has(txId)) moments.get(txId).asked = asked;
      return results;
    },
);
around(
  Committer.prototype,
  "write",
  (original) =>
    function queued(write) {
      for (const txId of idsOf(write)) note(txId, "queued");
      return original.call(this, write);
    },
);
around(
  Committer.prototype,
  "commitPatiently",
  (original) =>
    async function commit(batch, ...given) {
      const writes = batch.map(({ write }) => write);
      for (const write of writes) {
        for (const txId of idsOf(write)) {
          note(txId, "left");
          moments.get(txId).free = ended.get(write.fence) ?? 0;
        }
        committing.set(write.fence, [...(committing.get(write.fence) ?? []), ...idsOf(write)]);
      }
      try {
        const committed = await original.call(this, batch, ...given);
        for (const write of writes) for (const txId of idsOf(write)) note(txId, "committed");
        return committed;
      } finally {
        for (const { fence } of writes) {
          committing.delete(fence);
          ended.set(fence, performance.now());
        }
      }
    },
);
// A commit in one round trip is planned at once, one in two when its lanes are locked: the last plan counts.
around(
  Plan.prototype,
  "load",
  (original) =>
    function load(needs) {
      for (const { fence } of needs) for (const txId of committing.get(fence) ?? []) note(txId, "locked");
      return original.call(this, needs);
    },
);
subscribe("http.server.response.finish", ({ request, response }) => {
  // Fastify hands all headers to writeHead, which keeps them as text only.
  const [, txId] = /^location: .*\/(.*)\r$/im.exec(response._header) ?? [];
  const at = moments.get(txId);
  if (!moments.delete(txId) || at.committed === undefined) return;
  samples.read.push(at.asked - arrivals.get(request));
  samples.prepare.push(at.queued - at.asked);
  const free = Math.max(at.free, at.queued);
  samples.lane.push(free - at.queued);
  samples.departure.push(at.left - free);
  samples.lock.push(at.locked - at.left);
  samples.commit.push(at.committed - at.locked);
  samples.answer.push(performance.now() - at.committed);
});
process.on("SIGUSR2", () => {
  for (const each of Object.values(samples)) each.length = 0;
});
process.on("exit", () => writeFileSync(file, JSON.stringify(samples)));

process.exit(await main(process.argv.slice(2)));
