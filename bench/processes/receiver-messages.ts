/** What the receiver that works got since the last report. */
export interface ReceiverReport {
  readonly outcomes: number;
  readonly delaysMs: readonly number[];
}
