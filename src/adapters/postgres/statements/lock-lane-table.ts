import { statement } from "./statement.ts";

/** Waits in line until nobody has locked any lane, and lets nobody lock one before COMMIT. Readers do not notice. */
export const lockLaneTable = statement<unknown>("lock-lane-table", "SELECT fencepost.lock_lane_table()");
