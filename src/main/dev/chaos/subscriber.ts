/** A receiver of webhooks. It refuses some deliveries and answers others late. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import type { Clock } from "../../../ports/clock.ts";
import { LOOPBACK, portOf } from "../embedded/loopback-port.ts";
import type { CompletionFact } from "./check.ts";
import type { Dice } from "./dice.ts";

interface Delivered {
  readonly seq: number;
  readonly lane: string;
}

export type Subscriber = Awaited<ReturnType<typeof openSubscriber>>;

export async function openSubscriber(clock: Clock, dice: Dice) {
  /** Feed items in the order of their first arrival, by the id of their delivery. */
  const delivered = new Map<string, Delivered>();
  let secret: Buffer | null = null;
  let isHonest = false;
  let forged = 0;

  const isGenuine = (body: string, { headers }: IncomingMessage): boolean => {
    if (secret === null) return false;
    const signed = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${body}`;
    const own = Buffer.from(`v1,${createHmac("sha256", secret).update(signed).digest("base64")}`);
    const given = String(headers["webhook-signature"]).split(" ");
    return given.some((each) => each.length === own.length && timingSafeEqual(Buffer.from(each), own));
  };
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await text(request);
    if (!isHonest && dice.chance(0.02)) return void response.writeHead(503).end();
    if (!isHonest && dice.chance(0.02)) await clock.sleep(dice.int(100, 3_000));
    if (!isGenuine(body, request)) {
      forged++;
      return void response.writeHead(401).end();
    }
    const { seq, signer, chainId } = JSON.parse(body) as { seq: number; signer: string; chainId: number };
    const id = String(request.headers["webhook-id"]);
    if (request.headers["fencepost-event"] === "completion" && !delivered.has(id))
      delivered.set(id, { seq, lane: `${chainId}:${signer}` });
    if (!isHonest && dice.chance(0.01)) return void request.socket.destroy();
    response.writeHead(204).end();
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  await once(server.listen(0, LOOPBACK), "listening");
  return {
    url: `http://${LOOPBACK}:${portOf(server)}/outcomes`,
    trust: (given: string) => {
      secret = Buffer.from(given.replace(/^whsec_/, ""), "base64");
    },
    /** Takes everything from now on. */
    heal: () => {
      isHonest = true;
    },
    delivered: () => delivered.size,
    /** Nothing of the feed is missing, and the outcomes of each lane arrived in its order. */
    troubles: (feed: readonly CompletionFact[]): readonly string[] => {
      const seen = new Set([...delivered.values()].map(({ seq }) => seq));
      const missing = feed.filter(({ seq }) => !seen.has(seq)).map(({ seq }) => `webhook: ${seq} was never delivered`);
      const last = new Map<string, number>();
      const late = [...delivered.values()].filter(({ seq, lane }) => {
        const isLate = seq < (last.get(lane) ?? 0);
        last.set(lane, seq);
        return isLate;
      });
      const unordered = late.map(({ seq, lane }) => `webhook: ${seq} of ${lane} came after a later one`);
      return [...missing, ...unordered, ...(forged > 0 ? [`webhook: ${forged} deliveries without a signature`] : [])];
    },
    close: async () => {
      server.closeAllConnections();
      await once(server.close(), "close");
    },
  };
}
