import Fastify from "fastify";

/** What any Fastify service costs before it does anything: the upper limit that single creates are compared with. */
const app = Fastify({ logger: false });
app.post("/no-op", async () => ({ ok: true }));
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.send?.({ url });
process.on("disconnect", () => process.exit(0));
