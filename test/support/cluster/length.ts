/** `npm run test:cluster` sets FENCEPOST_CLUSTER_LONG, which makes the tests larger and longer. */
export const isLong = process.env.FENCEPOST_CLUSTER_LONG !== undefined;
