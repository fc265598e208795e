import { createClient } from "../../src/client/index.ts";
import { ROUTES, type Route } from "../../src/contract/routes.ts";
import { exampleOf } from "../../src/contract/schemas/example-of.ts";
import type { CommandWorld } from "./command.ts";

interface Asked {
  readonly route: Route;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A fake node that answers every request with the contract's example response and records the request. */
export function recordedNode() {
  const asked: Asked[] = [];
  const answer = (method: string, url: string, body: unknown) => {
    const { pathname, searchParams } = new URL(url);
    const route = routeOf(method, pathname);
    asked.push({ route, query: Object.fromEntries(searchParams), body });
    const [status = "200", answer] = Object.entries(route.answers)[0] ?? [];
    const { schema, example, exampleText, contentType = "application/json" } = answer ?? {};
    const text = exampleText ?? JSON.stringify(schema === undefined ? {} : exampleOf(schema, example));
    return { status: Number(status), text, contentType };
  };
  const fetch: typeof globalThis.fetch = async (url, init = {}) => {
    const body = init.body === undefined ? undefined : JSON.parse(String(init.body));
    const { status, text, contentType } = answer(init.method ?? "GET", String(url), body);
    return new Response(text, { status, headers: { "content-type": contentType } });
  };
  const actions: CommandWorld["actions"] = {
    connect: async () => createClient({ url: "http://node", fetch }),
    look: async (_, path) => answer("GET", `http://node${path}`, undefined),
  };
  return { asked, actions };
}

function routeOf(method: string, pathname: string): Route {
  const fits = ({ method: own, path }: Route): boolean => {
    const pattern = path.replace(/\{\w+\}/g, "[^/]+");
    return own.toUpperCase() === method && new RegExp(`^${pattern}$`).test(pathname);
  };
  // Literal routes precede those with parameters: `/tx/completions` is not a transaction id.
  const found = ROUTES.filter(fits).sort((a, b) => a.path.split("{").length - b.path.split("{").length)[0];
  if (found === undefined) throw new Error(`no route: ${method} ${pathname}`);
  return found;
}
