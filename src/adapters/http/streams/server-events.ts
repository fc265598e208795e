/** Server-sent events of the completion feed, as text (HTML Living Standard, 9.2.5 and 9.2.6). */
import { invalid } from "../../../domain/errors.ts";

/** Position in the feed: everything up to `seq` was sent. `epoch`: the feed's epoch at that time. */
export interface Place {
  readonly epoch: number;
  readonly seq: number;
}

const WRITTEN = /^(0|[1-9][0-9]{0,15}):(0|[1-9][0-9]{0,15})$/;

/** Reads the id of an event. Refuses any other text: a wrong position would skip or repeat outcomes. */
export function placeIn(id: string): Place {
  const [epoch, seq] = (WRITTEN.exec(id) ?? []).slice(1).map(Number);
  if (Number.isSafeInteger(epoch) && Number.isSafeInteger(seq)) return { epoch, seq } as Place;
  throw invalid("last-event-id", "must be the id of an event of this stream, such as 1:42");
}

/** Moves the reader's position without an event. Also keeps an idle connection open through proxies. */
export function placeText({ epoch, seq }: Place): string {
  return `id: ${epoch}:${seq}\n\n`;
}

/**
 * Text of an event. `json` has no line breaks, because JSON escapes those within texts. Without a place, the reader's
 * position stays that of the event before.
 */
export function eventText(name: string, json: string, place: Place | null): string {
  const id = place === null ? "" : `id: ${place.epoch}:${place.seq}\n`;
  return `${id}event: ${name}\ndata: ${json}\n\n`;
}
