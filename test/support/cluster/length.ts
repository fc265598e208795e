/** `npm run test:cluster` sets FENCEPOST_CLUSTER_LONG: more of the same, for those who have the time. */
export const isLong = process.env.FENCEPOST_CLUSTER_LONG !== undefined;
