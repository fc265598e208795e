/**
 * `fencepost dev` with a real key, an external chain or a public address: nothing can be spent from it without an API
 * key.
 */
import { expect } from "vitest";
import { it, linesOf } from "../support/command-line.ts";
import { KEYS, QUICK, RECIPIENT, SIGNER } from "../support/integration.ts";

const SECRET = "a-long-enough-secret-of-orders";

/** Posts a transfer, without credentials unless a key is given, and returns the HTTP status. */
function post(url: string, key?: string): Promise<number> {
  const headers = { "content-type": "application/json", ...(key && { authorization: `Bearer ${key}` }) };
  const body = JSON.stringify({ signer: SIGNER, payload: { to: RECIPIENT, value: "1000000000000000000" } });
  return fetch(`${url}/api/v1/tx`, { method: "POST", headers, body }).then(({ status }) => status);
}

// protects [Attacks] src/main/config/combinations.ts
it("`fencepost dev` with the user's own key and chain refuses to start without API keys, on any address", async ({
  fencepost,
  database,
  edr,
}) => {
  const { FENCEPOST_AUTH: _, ...quick } = QUICK;
  const own = { ...quick, FENCEPOST_PRIVATE_KEYS: KEYS[0], FENCEPOST_RPC_URL: edr.url };
  const reachable = { ...own, FENCEPOST_DATABASE_URL: database.url, FENCEPOST_HOST: "0.0.0.0" };
  for (const variables of [reachable, { ...reachable, FENCEPOST_HOST: "127.0.0.1" }]) {
    const dev = fencepost.run(["dev", "--json"], variables);
    const ready = dev.ready.catch(() => null);
    const ended = await Promise.race([dev.exited, ready.then(() => null)]);
    const sent = ended === null ? await post((await dev.ready).url) : null;
    expect(sent, "a node that is open to all took a transfer of 1 ETH").toBeNull();
    expect(ended).toEqual({ code: 2, signal: null });
    expect(linesOf(dev.stderr())).toEqual([
      expect.stringMatching(/^fencepost: FENCEPOST_API_KEYS: is required by dev/),
    ]);
  }
  const dev = fencepost.run(["dev", "--json"], { ...reachable, FENCEPOST_API_KEYS: `orders:${SECRET}` });
  const port = new URL((await dev.ready).url).port;
  expect(await post(`http://127.0.0.1:${port}`)).toBe(401);
  expect(await edr.rpc("eth_getBalance", [RECIPIENT, "latest"])).toBe("0x0");
  expect(await post(`http://127.0.0.1:${port}`, SECRET)).toBe(202);
});
