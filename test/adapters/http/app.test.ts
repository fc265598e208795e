import { describe, expect, it } from "vitest";
import { httpApp } from "../../support/http-app.ts";

describe("an HTTP route", () => {
  const schema = { type: "object", properties: { note: { type: "string" } } };

  it.each(["body", "querystring", "params", "headers"])(
    "cannot be registered with a Fastify schema that validates its %s",
    async (part) => {
      const app = httpApp();
      app.post("/mistake", { config: { open: true }, schema: { [part]: schema } }, async () => ({}));
      await expect(app.ready()).rejects.toThrow(/Fastify's request validation is disabled/);
    },
  );

  it("returns only the response fields that its schema lists", async () => {
    const app = httpApp();
    const open = { config: { open: true }, schema: { response: { 200: schema } } } as const;
    app.get("/answer", open, async () => ({ note: "said", aside: "unsaid" }));
    expect((await app.inject("/answer")).body).toBe('{"note":"said"}');
  });
});
