/**
 * V8 options for a program that runs much code for a short time. With V8's defaults, a third of the CPU time is spent
 * on optimising functions that soon end, and a fifth of the rest on a young generation that is too small. Stack traces
 * are recorded only when a seed is replayed.
 */
export const V8_OPTIONS = ["--interrupt-budget=1000000", "--max-semi-space-size=64", "--stack-trace-limit=0"];
