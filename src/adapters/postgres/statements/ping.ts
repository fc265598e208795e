import { statement } from "./statement.ts";

export const ping = statement<unknown>("ping", "SELECT 1");
