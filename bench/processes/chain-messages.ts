export interface ChainQuestion {
  /** Whether arrivals are noted from now on; the answer holds those noted until now. */
  readonly watchArrivals: boolean;
}

export interface ChainReport {
  /** HTTP round trips since the start. */
  readonly requests: number;
  /** "sender:nonce" → milliseconds since the epoch. */
  readonly arrivals: Readonly<Record<string, number>>;
}
