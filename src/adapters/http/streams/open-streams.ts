/** Limits on the streams that are open at the same time, per API key and per node. */
import { FencepostError, unavailable } from "../../../domain/errors.ts";
import { KeyCounts } from "../admission/key-counts.ts";

/** Largest numbers of open streams. One key alone cannot take all streams of a node. */
export const MOST_STREAMS = { ofKey: 32, ofNode: 256 } as const;

const STREAMS_RULE = "streams";
/** A stream whose reader vanished keeps its place for some seconds, until TCP probes fail. */
const RETRY_AFTER_SECONDS = 5;

/**
 * Creates the count of open streams. The returned function takes a place for a stream of this key, or throws. Its
 * result gives the place back.
 */
export function openStreams(onChange: (open: number) => void = () => undefined) {
  const counts = new KeyCounts();
  const add = (key: string | null, by: 1 | -1) => {
    counts.add(key, by);
    onChange(counts.total);
  };
  return (key: string | null) => {
    refuseOneMore(counts, key);
    add(key, 1);
    return () => add(key, -1);
  };
}

function refuseOneMore(counts: KeyCounts, key: string | null) {
  const { ofKey, ofNode } = MOST_STREAMS;
  if (key !== null && counts.of(key) >= ofKey) {
    const extras = { rule: STREAMS_RULE, limit: ofKey, retryAfterSeconds: RETRY_AFTER_SECONDS };
    throw new FencepostError("QUOTA_EXCEEDED", `this API key has at most ${ofKey} streams open on a node`, extras);
  }
  // 503, not 429: another node may have room, and clients look there.
  if (counts.total >= ofNode) throw unavailable(`this node has at most ${ofNode} streams open: ask another one`);
}
