/** The one place where the pace of a lane or of a transaction changes: to what follows from what happened. */
export function happened<Pace, Details extends readonly unknown[]>(
  to: { pace: Pace },
  event: (pace: Pace, ...details: Details) => Pace,
  ...details: Details
): void {
  to.pace = event(to.pace, ...details);
}
